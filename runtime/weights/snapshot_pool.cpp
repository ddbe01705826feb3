#include "runtime/weights/snapshot_pool.hpp"

#include "runtime/core/check.hpp"
#include "runtime/weights/limits.hpp"

#include <algorithm>

namespace troupe::weights {

// Returns a free snapshot, to which only `all_` points, or null. The newest and the leased ones
// have other owners too.
template <class Kind>
std::shared_ptr<Kind> LeasePool<Kind>::find_free() const {
  for (const auto& snapshot : all_)
    if (snapshot.use_count() == 1) return snapshot;
  return nullptr;
}

template <class Kind>
core::Result<std::shared_ptr<Kind>> LeasePool<Kind>::take(const Make& make) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Kind> found = find_free();
  if (found == nullptr && all_.size() >= 2) {
    ended_.wait_for(lock, limits::kWeightReuse, [&] { return (found = find_free()) != nullptr; });
  }
  if (found != nullptr) return found;
  TROUPE_CHECK(all_.size() < limits::kWeightReaders_max + 2,
               "more snapshots than receivers can hold");
  lock.unlock();  // only this thread calls `take`; `make` is slow: it touches every page
  TROUPE_TRY_ASSIGN(made, make());
  lock.lock();
  all_.push_back(made);
  ++made_;
  return made;
}

template <class Kind>
void LeasePool<Kind>::offer(std::shared_ptr<Kind> filled) {
  std::lock_guard lock(mutex_);
  newest_ = std::move(filled);
  drop_spare();
}

template <class Kind>
void LeasePool<Kind>::drop_spare() {
  while (all_.size() > 2) {
    const auto spare = find_free();
    if (spare == nullptr) return;
    std::erase(all_, spare);
  }
}

template <class Kind>
std::shared_ptr<Kind> LeasePool<Kind>::lease_newest() {
  std::lock_guard lock(mutex_);
  return newest_;
}

template <class Kind>
void LeasePool<Kind>::end_lease(std::shared_ptr<Kind>& lease) {
  if (lease == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    lease.reset();
    drop_spare();
  }
  ended_.notify_one();
}

template <class Kind>
std::size_t LeasePool<Kind>::size() const {
  std::lock_guard lock(mutex_);
  return all_.size();
}

template <class Kind>
std::uint64_t LeasePool<Kind>::made() const {
  std::lock_guard lock(mutex_);
  return made_;
}

template class LeasePool<Snapshot>;
template class LeasePool<DeviceSnapshot>;

}  // namespace troupe::weights
