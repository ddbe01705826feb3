#include "runtime/learn/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::learn {

Schedule::Schedule(const OptimSettings& optim, std::int64_t total_steps)
    : peak_(optim.lr),
      min_ratio_(optim.lr_min_ratio),
      total_steps_(total_steps),
      warmup_steps_(static_cast<std::int64_t>(
          std::ceil(optim.warmup_ratio * static_cast<double>(total_steps)))) {
  warmup_steps_ =
      std::clamp<std::int64_t>(warmup_steps_, 0, std::max<std::int64_t>(total_steps, 0));
}

double Schedule::rate(std::int64_t step) const {
  if (total_steps_ <= 0) return peak_;
  const std::int64_t s = step + 1;
  if (s <= warmup_steps_) {
    return peak_ * static_cast<double>(s) / static_cast<double>(warmup_steps_);
  }
  if (s >= total_steps_) return peak_ * min_ratio_;
  const double progress =
      static_cast<double>(s - warmup_steps_) / static_cast<double>(total_steps_ - warmup_steps_);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return peak_ * (min_ratio_ + (1.0 - min_ratio_) * cosine);
}

}  // namespace troupe::learn
