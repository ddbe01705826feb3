// The machine's limits at the active kernel level, measured in the run that needs them.
#pragma once

#include "kernels/calibrate.hpp"
#include "runtime/core/team.hpp"

namespace troupe::app {

// Takes the larger of two measurements: other load on the machine only ever lowers them.
kernels::MachineLimits measure_limits(core::TeamRunner& team);
kernels::MachineLimits best_of(const kernels::MachineLimits& a, const kernels::MachineLimits& b);

}  // namespace troupe::app
