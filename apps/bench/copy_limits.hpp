// Measures how fast the machine moves bytes: in memory, over loopback, and from one process to
// another through a small shared window. Benchmarks of transfers print their results as shares of
// these. GB/s, each byte counted once; medians of 3 rounds after a warm-up.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>

namespace troupe::bench {

// Copying `bytes` in memory with the team's threads.
double copy_gb_per_s(core::TeamRunner& team, std::int64_t bytes);

// A bare loopback socket from one thread to another. Error kResources.
core::Result<double> loopback_gb_per_s(std::int64_t bytes);

// Copying `bytes` into a window of shared memory and out of it, by two threads that wait for each
// other without sleeping, in `pairs` pairs at once. Error kResources.
core::Result<double> window_gb_per_s(std::int64_t bytes, std::int64_t window_bytes, int pairs);

}  // namespace troupe::bench
