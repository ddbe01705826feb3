// Bounds of activity records, configuration files and groups; users cannot change them. Constants
// only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::core::limits {
using namespace std::chrono_literals;
#include "runtime/core/limits.def"
}  // namespace troupe::core::limits
