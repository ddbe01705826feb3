#include "runtime/weights/snapshot_pool.hpp"

#include "runtime/core/check.hpp"
#include "runtime/weights/limits.hpp"

#include <algorithm>
#include <atomic>

namespace troupe::weights {

// Returns a free snapshot, to which only `all_` points, or null. The newest and the leased ones
// have other owners too.
template <class Kind>
std::shared_ptr<Kind> LeasePool<Kind>::find_free() const {
  for (const auto& snapshot : all_) {
    if (snapshot.use_count() != 1) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last other holder let go
    return snapshot;
  }
  return nullptr;
}

template <class Kind>
core::Result<std::shared_ptr<Kind>> LeasePool<Kind>::take(const Make& make) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Kind> found = find_free();
  const auto is_free = [&] { return (found = find_free()) != nullptr; };
  taking_ = true;
  if (found == nullptr && all_.size() >= 2) ended_.wait_for(lock, limits::kWeightReuse, is_free);
  if (found == nullptr && all_.size() >= limits::kWeightSnapshots_max) {
    want_oldest_back(lock, found);
  }
  taking_ = false;
  filling_ = found.get();
  if (found != nullptr) return found;
  lock.unlock();  // only this thread calls `take`; `make` is slow: it touches every page
  TROUPE_TRY_ASSIGN(made, make());
  lock.lock();
  all_.push_back(made);
  filling_ = made.get();
  most_ = std::max(most_, all_.size());
  ++made_;
  return made;
}

// At most two of three snapshots are the newest and the kept one.
template <class Kind>
void LeasePool<Kind>::want_oldest_back(std::unique_lock<std::mutex>& lock,
                                       std::shared_ptr<Kind>& found) {
  for (const auto& one : all_) {
    const bool may = one != newest_ && one.get() != kept_;
    if (may && (!wanted_back_ || one->version() < wanted_back_->version())) {
      wanted_back_ = one.get();
    }
  }
  TROUPE_CHECK(wanted_back_ != nullptr && on_want_back_, "a snapshot that can be had back");
  lock.unlock();
  on_want_back_();
  lock.lock();
  const auto is_free = [&] { return (found = find_free()) != nullptr; };
  if (may_exceed_) {
    ended_.wait_for(lock, limits::kWeightReuse, is_free);
  } else {
    ended_.wait(lock, is_free);
  }
  wanted_back_ = nullptr;
}

template <class Kind>
void LeasePool<Kind>::offer(std::shared_ptr<Kind> filled) {
  std::lock_guard lock(mutex_);
  newest_ = std::move(filled);
  filling_ = nullptr;
  drop_spare();
}

// Keeps one free snapshot for the next version.
template <class Kind>
void LeasePool<Kind>::drop_spare() {
  if constexpr (Kind::kSparesStay) return;
  const auto spare = find_free();
  if (spare == nullptr) return;
  std::erase_if(all_, [&](const auto& one) { return one.use_count() == 1; });
}

template <class Kind>
std::shared_ptr<Kind> LeasePool<Kind>::lease(const std::shared_ptr<Kind>& one, bool keep) {
  if (!keep || one == nullptr || (kept_ != nullptr && kept_ != one.get())) return one;
  kept_ = one.get();
  ++keepers_;
  return one;
}

template <class Kind>
std::shared_ptr<Kind> LeasePool<Kind>::lease_newest(bool keep) {
  std::lock_guard lock(mutex_);
  return lease(newest_, keep);
}

// One that is free, or leased by others, still has its version until `take` gives it away. One that
// is wanted back is as good as gone.
template <class Kind>
std::shared_ptr<Kind> LeasePool<Kind>::lease_version(core::Version version, bool keep) {
  std::lock_guard lock(mutex_);
  for (const auto& one : all_) {
    const bool may = one.get() != filling_ && one.get() != wanted_back_;
    if (may && one->version() == version) return lease(one, keep);
  }
  return nullptr;
}

template <class Kind>
void LeasePool<Kind>::end_lease(std::shared_ptr<Kind>& lease) {
  if (lease == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    lease.reset();
    if (!taking_) drop_spare();
  }
  ended_.notify_one();
}

template <class Kind>
bool LeasePool<Kind>::wants_back(const std::shared_ptr<Kind>& lease) const {
  std::lock_guard lock(mutex_);
  return lease != nullptr && lease.get() == wanted_back_;
}

template <class Kind>
bool LeasePool<Kind>::keeps_older() const {
  std::lock_guard lock(mutex_);
  return kept_ != nullptr && kept_ != newest_.get();
}

template <class Kind>
bool LeasePool<Kind>::keeps(const std::shared_ptr<Kind>& lease) const {
  std::lock_guard lock(mutex_);
  return lease != nullptr && lease.get() == kept_;
}

template <class Kind>
void LeasePool<Kind>::stop_keeping() {
  std::lock_guard lock(mutex_);
  if (--keepers_ == 0) kept_ = nullptr;
}

template <class Kind>
std::size_t LeasePool<Kind>::size() const {
  std::lock_guard lock(mutex_);
  return all_.size();
}

template <class Kind>
std::size_t LeasePool<Kind>::most() const {
  std::lock_guard lock(mutex_);
  return most_;
}

template <class Kind>
std::uint64_t LeasePool<Kind>::made() const {
  std::lock_guard lock(mutex_);
  return made_;
}

template class LeasePool<Snapshot>;
template class LeasePool<DeviceSnapshot>;

}  // namespace troupe::weights
