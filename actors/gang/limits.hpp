// The bounds of gangs, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::gang::limits {
using namespace std::chrono_literals;
#include "actors/gang/limits.def"
}  // namespace troupe::actors::gang::limits
