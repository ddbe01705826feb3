// The bounds of the policy role, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::policy::limits {
using namespace std::chrono_literals;
#include "actors/policy/limits.def"
}  // namespace troupe::actors::policy::limits
