// Who holds what is the count of the shared pointer, changed and read under the lock.
#include "runtime/weights/snapshot_pool.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::weights {

// The pool's own pointer is the only one to a snapshot that is free.
std::shared_ptr<Snapshot> SnapshotPool::find_free() const {
  for (const auto& snapshot : all_)
    if (snapshot.use_count() == 1) return snapshot;
  return nullptr;
}

core::Result<std::shared_ptr<Snapshot>> SnapshotPool::take(const SnapshotShape& shape) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Snapshot> found = find_free();
  if (found == nullptr && all_.size() >= 2) {
    ended_.wait_for(lock, core::limits::kWeightReuse, [&] { return (found = find_free()) != nullptr; });
  }
  if (found != nullptr) return found;
  TROUPE_CHECK(all_.size() < core::limits::kWeightReaders_max + 2, "more snapshots than receivers can hold");
  lock.unlock();  // only this thread takes; making one costs a page fault for every page
  TROUPE_TRY_ASSIGN(made, Snapshot::create(shape));
  lock.lock();
  all_.push_back(made);
  ++made_;
  return made;
}

void SnapshotPool::offer(std::shared_ptr<Snapshot> filled) {
  std::lock_guard lock(mutex_);
  newest_ = std::move(filled);
  drop_spare();
}

void SnapshotPool::drop_spare() {
  while (all_.size() > 2) {
    const auto spare = find_free();
    if (spare == nullptr) return;
    std::erase(all_, spare);
  }
}

std::shared_ptr<Snapshot> SnapshotPool::lease_newest() {
  std::lock_guard lock(mutex_);
  return newest_;
}

void SnapshotPool::end_lease(std::shared_ptr<Snapshot>& lease) {
  if (lease == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    lease.reset();
    drop_spare();
  }
  ended_.notify_one();
}

std::size_t SnapshotPool::size() const {
  std::lock_guard lock(mutex_);
  return all_.size();
}

std::uint64_t SnapshotPool::made() const {
  std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace troupe::weights
