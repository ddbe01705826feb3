// Keeps the snapshots of one publisher, on the host or on its device: two that are reused in turn,
// and more only while receivers hold older ones. A lease is a shared pointer; a snapshot that
// anyone leases is never written. The server's thread gives and ends leases; the publisher's takes
// and offers snapshots. Bound: each receiver leases at most one snapshot, so at most
// kWeightReaders_max + 2 exist.
#pragma once

#include "runtime/weights/device_snapshot.hpp"
#include "runtime/weights/snapshot.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::weights {

// `Kind` is Snapshot or DeviceSnapshot.
template <class Kind>
class LeasePool {
 public:
  using Make = std::function<core::Result<std::shared_ptr<Kind>>()>;
  // Returns a snapshot to fill that is neither the newest nor leased. If there is none, waits at
  // most kWeightReuse, then makes one. Errors: those of `make`.
  core::Result<std::shared_ptr<Kind>> take(const Make& make);
  // Makes `filled`, which came from `take`, the newest snapshot.
  void offer(std::shared_ptr<Kind> filled);

  std::shared_ptr<Kind> lease_newest();  // null before the first
  void end_lease(std::shared_ptr<Kind>& lease);

  std::size_t size() const;
  std::uint64_t made() const;  // snapshots ever made

 private:
  std::shared_ptr<Kind> find_free() const;
  void drop_spare();

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::shared_ptr<Kind>> all_;
  std::shared_ptr<Kind> newest_;
  std::uint64_t made_ = 0;
};

using SnapshotPool = LeasePool<Snapshot>;
using DeviceSnapshotPool = LeasePool<DeviceSnapshot>;

}  // namespace troupe::weights
