// The learning rate of each optimiser step: linear warm-up, then one of a table of schedules. A
// pure function of the step, so a resumed run continues it from the step count alone. To add a
// schedule, add a row in schedule.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace troupe::learn {

struct OptimSettings;

// Where a step is after the warm-up. Steps are counted from 1.
struct ScheduleStep {
  double done = 0;   // steps after the warm-up, this one included
  double total = 0;  // steps after the warm-up in the whole run; at least `done`
  double decay = 0;  // last steps of the run, in which `wsd` decays; at most `total`
  double cycles = 1;
};

// A way from the peak to the least rate.
struct Schedule {
  std::string_view name, alias = {};
  std::string_view help;
  bool decays = true;  // ends at the least rate
  // 1 at the peak, 0 at the least rate; not called for the last step, nor unless it decays.
  double (*share)(const ScheduleStep& at) = nullptr;

  static std::span<const Schedule> all();
};

// The learning rate of `step`, counted from 0. `total_steps`: optimiser steps of the whole run; 0
// keeps the rate constant. With s = step + 1, W = ceil(warmup_ratio * T), T = total_steps and
// m = lr_min_ratio: lr * s/W up to s = W (so the first step has a rate above 0), then
// lr * (m + (1 - m) * share). From s = T on exactly lr * m, if the schedule decays. The shares are
// those of transformers.get_scheduler.
double learning_rate(const OptimSettings& optim, std::int64_t total_steps, std::int64_t step);

}  // namespace troupe::learn
