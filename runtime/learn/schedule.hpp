// The learning rate of each optimiser step: linear warm-up, then a cosine down to a share of the
// peak. A pure function of the step, so a resumed run continues it from the step count alone.
#pragma once

#include "runtime/learn/settings.hpp"

#include <cstdint>

namespace troupe::learn {

// The learning rate of `step`, counted from 0. `total_steps`: optimiser steps of the whole run; 0
// keeps the rate constant. With s = step + 1, W = ceil(warmup_ratio * T), T = total_steps and
// m = lr_min_ratio: lr * s/W up to s = W (so the first step has a rate above 0), then
// lr * (m + (1 - m) * (1 + cos(pi * (s - W)/(T - W))) / 2). From s = T on, exactly lr * m.
double learning_rate(const OptimSettings& optim, std::int64_t total_steps, std::int64_t step);

}  // namespace troupe::learn
