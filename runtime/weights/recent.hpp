// What a receiver has opened of a publisher, by its number: the last kWeightMappings_max are kept,
// since a publisher uses its buffers in turn and opening one again costs more than a step.
// Thread-safe; what it gives out may outlive it.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/weights/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::weights {

template <class Opened>
class Recent {
 public:
  // Number `id`, kept or made by `open`.
  template <class Open>
  core::Result<std::shared_ptr<const Opened>> get(std::uint64_t id, const Open& open) {
    const std::lock_guard lock(mutex_);
    const auto known =
        std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one->id() == id; });
    if (known != kept_.end()) {
      std::rotate(known, known + 1, kept_.end());
      return kept_.back();
    }
    TROUPE_TRY_ASSIGN(made, open());
    kept_.push_back(std::move(made));
    if (kept_.size() > limits::kWeightMappings_max) kept_.erase(kept_.begin());
    return kept_.back();
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Opened>> kept_;  // last used at the end
};

}  // namespace troupe::weights
