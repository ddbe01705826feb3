// The machine's limits at the active kernel level, measured in the run that needs them.
#pragma once

#include "kernels/calibrate.hpp"
#include "runtime/core/team.hpp"

namespace troupe::app {

// `bytes`: how many to read; 0: enough to measure memory and not a cache.
kernels::MachineLimits measure_limits(core::TeamRunner& team,
                                      std::int64_t bytes = 0,
                                      int passes = 2);
// The larger of two measurements, figure by figure: other load on the machine only lowers them.
kernels::MachineLimits best_of(const kernels::MachineLimits& a, const kernels::MachineLimits& b);

}  // namespace troupe::app
