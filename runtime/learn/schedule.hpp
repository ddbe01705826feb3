// The learning rate of each optimiser step: linear warm-up, then a cosine down to a share of the
// peak. A pure function of the step, so a resumed run continues it from the step count alone.
#pragma once

#include "runtime/learn/settings.hpp"

#include <cstdint>

namespace troupe::learn {

class Schedule {
 public:
  // `total_steps`: optimiser steps of the whole run; 0 keeps the rate constant.
  Schedule(const OptimSettings& optim, std::int64_t total_steps);

  // The rate of the 0-based step. With s = step + 1, W = ceil(warmup_ratio * T) and T =
  // total_steps: lr * s/W up to s = W (the first step already moves), then lr * (m + (1 - m) * (1 +
  // cos(pi * (s - W)/(T - W))) / 2) with m = lr_min_ratio, which is exactly lr * m at the last step
  // and stays there.
  double rate(std::int64_t step) const;

  std::int64_t warmup_steps() const { return warmup_steps_; }

 private:
  double peak_;
  double min_ratio_;
  std::int64_t total_steps_;
  std::int64_t warmup_steps_;
};

}  // namespace troupe::learn
