#include "runtime/weights/shadow_pool.hpp"

#include <atomic>

namespace troupe::weights {

std::shared_ptr<model::PackedWeights> ShadowPool::take() {
  std::lock_guard lock(mutex_);
  for (const auto& panels : kept_) {
    if (panels.use_count() != 1) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last other holder let go
    return panels;
  }
  auto fresh = std::make_shared<model::PackedWeights>(spec_, dtype_, memory_);
  fresh->touch();
  if (kept_.size() >= 2) kept_.erase(kept_.begin());  // its holders keep it alive
  kept_.push_back(fresh);
  return fresh;
}

}  // namespace troupe::weights
