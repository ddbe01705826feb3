// Bounds of activity records, of configuration files and of groups, none a user's choice. Constants
// only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::core::limits {
using namespace std::chrono_literals;
#include "runtime/core/limits.def"
}  // namespace troupe::core::limits
