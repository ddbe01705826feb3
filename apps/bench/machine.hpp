// Measures the machine's limits, multiply-adds per second and bytes read per second, at the active
// kernel level; benchmarks print their results as shares of them.
#pragma once

#include "kernels/calibrate.hpp"
#include "runtime/core/team.hpp"

namespace troupe::bench {

// `bytes`: size of the buffer to read; 0: large enough to measure memory and not a cache. `passes`:
// over that buffer; the best counts.
kernels::MachineLimits measure_limits(core::TeamRunner& team,
                                      std::int64_t bytes = 0,
                                      int passes = 2);
// The larger of two measurements, figure by figure: other load on the machine only lowers them.
kernels::MachineLimits best_of(const kernels::MachineLimits& a, const kernels::MachineLimits& b);

}  // namespace troupe::bench
