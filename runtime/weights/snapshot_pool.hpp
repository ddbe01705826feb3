// The snapshots of one publisher: two in turn, and more only while receivers hold on to older ones. A
// lease is a shared pointer; a snapshot that anyone leases is never written. Leases are given and ended
// by the server's thread, snapshots are taken and offered by the publisher's. Bound: each receiver
// leases one snapshot at most, so at most kWeightReaders_max + 2 exist.
#pragma once

#include "runtime/weights/snapshot.hpp"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace troupe::weights {

class SnapshotPool {
 public:
  // One that is neither the newest nor leased, to be filled. When there is none: waits kWeightReuse at
  // most, then makes one. Error: kResources.
  core::Result<std::shared_ptr<Snapshot>> take(const SnapshotShape& shape);
  // What was taken is filled: the newest from now on.
  void offer(std::shared_ptr<Snapshot> filled);

  std::shared_ptr<Snapshot> lease_newest();  // null before the first
  void end_lease(std::shared_ptr<Snapshot>& lease);

  std::size_t size() const;
  std::uint64_t made() const;  // snapshots ever made

 private:
  std::shared_ptr<Snapshot> find_free() const;
  void drop_spare();

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::shared_ptr<Snapshot>> all_;
  std::shared_ptr<Snapshot> newest_;
  std::uint64_t made_ = 0;
};

}  // namespace troupe::weights
