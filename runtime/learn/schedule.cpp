#include "runtime/learn/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::learn {

double learning_rate(const OptimSettings& optim, std::int64_t total_steps, std::int64_t step) {
  if (total_steps <= 0) return optim.lr;
  const auto warmup_steps = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::ceil(optim.warmup_ratio * static_cast<double>(total_steps))),
      0, total_steps);
  const std::int64_t s = step + 1;
  if (s <= warmup_steps)
    return optim.lr * static_cast<double>(s) / static_cast<double>(warmup_steps);
  if (s >= total_steps) return optim.lr * optim.lr_min_ratio;
  const double progress =
      static_cast<double>(s - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return optim.lr * (optim.lr_min_ratio + (1.0 - optim.lr_min_ratio) * cosine);
}

}  // namespace troupe::learn
