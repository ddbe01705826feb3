#include "runtime/learn/model/version_panels.hpp"

#include "kernels/ops.hpp"

#include <atomic>

namespace troupe::learn {

std::shared_ptr<const model::PackedWeights> VersionPanels::of(const model::ParamStore& weights,
                                                              core::Version version) {
  if (current_ && current_->version() == version) return current_;
  // Refills panels that nobody else holds: the current ones, else the spare ones. Fresh memory
  // would cost a page fault for every page.
  if (!current_ || current_.use_count() > 1) {
    std::swap(current_, spare_);
    if (!current_ || current_.use_count() > 1)
      current_ = std::make_shared<model::PackedWeights>(weights.spec(), dtype_, team_.memory());
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // after the last other holder let go
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    current_->fill(member, weights, version);
  });
  return current_;
}

}  // namespace troupe::learn
