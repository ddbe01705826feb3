// Bounds of activity records and of configuration files, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::core::limits {
using namespace std::chrono_literals;
#include "runtime/core/limits.def"
}  // namespace troupe::core::limits
