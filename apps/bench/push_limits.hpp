// What the machine can do with the same bytes in the same run: copy them in memory with the same
// threads, and send them through a bare loopback socket from one thread to another.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>

namespace troupe::app {

// GB/s, median of 3 after a first round.
double copy_gb_per_s(core::TeamRunner& team, std::int64_t bytes);
core::Result<double> loopback_gb_per_s(std::int64_t bytes);

}  // namespace troupe::app
