// Bounds of the collectives (limits.def) as constants; users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::collective::limits {
using namespace std::chrono_literals;
#include "runtime/collective/limits.def"
}  // namespace troupe::collective::limits
