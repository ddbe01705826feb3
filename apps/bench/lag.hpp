// `troupe bench lag`: how much each objective loses when it learns from old samples. Runs every arm
// at every lag with several seeds, each run on one thread, as many at a time as there are threads;
// one JSON line a run, then means with 95 % intervals, and a figure when asked.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

core::Result<void> bench_lag(Words words);

}  // namespace troupe::app
