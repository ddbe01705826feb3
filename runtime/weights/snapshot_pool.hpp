// Keeps the snapshots of one publisher, on the host or on its device: two that are reused in turn,
// and a third while receivers hold older ones (on a device it then stays); never more, except in a
// relay, whose own engine may hold one for long. A lease is a
// shared pointer; a snapshot that anyone leases is never written. When all three are in use, `take`
// wants the oldest back and waits until the server has ended its leases. The server may keep one
// snapshot, which is then not wanted back, so that a receiver that has lost one snapshot gets the
// next one whole. The server's thread gives and ends leases; the publisher's takes and offers
// snapshots.
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
  // `may_exceed`: makes a further snapshot when those that could be taken back stay in use.
  explicit LeasePool(bool may_exceed = false) : may_exceed_(may_exceed) {}

  using Make = std::function<core::Result<std::shared_ptr<Kind>>()>;
  // Returns a snapshot to fill that is neither the newest nor leased. If there is none, waits at
  // most kWeightReuse, then makes one; if there are kWeightSnapshots_max, wants one back and waits
  // for it. Errors: those of `make`.
  core::Result<std::shared_ptr<Kind>> take(const Make& make);
  // Makes `filled`, which came from `take`, the newest snapshot.
  void offer(std::shared_ptr<Kind> filled);

  // Null before the first. With `keep`, the newest becomes the kept one, if none is kept, or gets
  // one more that it is kept for, if it is the kept one; `keeps` tells.
  std::shared_ptr<Kind> lease_newest(bool keep = false);
  // Leases the snapshot with this version, the newest or the one before it, if that is free
  // still; else null.
  std::shared_ptr<Kind> lease_version(core::Version version, bool keep = false);
  void end_lease(std::shared_ptr<Kind>& lease);

  // Called by `take`, without a lock, when it wants a snapshot back. Set it before the first lease.
  void on_want_back(std::function<void()> call) { on_want_back_ = std::move(call); }
  bool wants_back(const std::shared_ptr<Kind>& lease) const;
  bool keeps(const std::shared_ptr<Kind>& lease) const;
  bool keeps_older() const;  // true when a snapshot is kept that is not the newest
  void stop_keeping();       // for one of those that it is kept for

  std::size_t size() const;
  std::size_t most() const;    // the largest size so far
  std::uint64_t made() const;  // snapshots ever made

 private:
  std::shared_ptr<Kind> find_free() const;
  std::shared_ptr<Kind> lease(const std::shared_ptr<Kind>& one, bool keep);
  void drop_spare();
  void want_oldest_back(std::unique_lock<std::mutex>& lock, std::shared_ptr<Kind>& found);

  const bool may_exceed_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::shared_ptr<Kind>> all_;
  std::shared_ptr<Kind> newest_;
  const Kind* filling_ = nullptr;  // what `take` gave last, until it is offered
  const Kind* kept_ = nullptr;
  std::size_t keepers_ = 0;  // leases for which it is kept
  const Kind* wanted_back_ = nullptr;
  bool taking_ = false;  // `take` waits: a snapshot that becomes free is for it
  std::function<void()> on_want_back_;
  std::size_t most_ = 0;
  std::uint64_t made_ = 0;
};

using SnapshotPool = LeasePool<Snapshot>;
using DeviceSnapshotPool = LeasePool<DeviceSnapshot>;

}  // namespace troupe::weights
