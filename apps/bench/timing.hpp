// Times work that a team does again and again. Functions without state.
#pragma once

#include "runtime/core/team.hpp"

#include <cstdint>
#include <functional>

namespace troupe::bench {

// Work that is timed: all members call it. `call` counts the calls, for work that takes different
// operands in turn.
using TimedWork = std::function<void(core::Team team, std::int64_t call)>;

// Seconds of one call, the median of kRepetitions measurements of 0.1 s at least, after calls that
// are not timed. On a device `at_once` calls are recorded and submitted together, so that the
// host's launches and the final wait do not count; they are launched one by one where the device
// cannot record.
double seconds_of(core::TeamRunner& team, const TimedWork& work, int at_once = 32);

}  // namespace troupe::bench
