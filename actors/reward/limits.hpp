// The bounds of rewards: requests, workers, retries, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::reward::limits {
using namespace std::chrono_literals;
#include "actors/reward/limits.def"
}  // namespace troupe::actors::reward::limits
