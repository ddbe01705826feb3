// Bounds of activity records, configuration files, samples, groups and rows of datasets. Constants;
// users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::core::limits {
using namespace std::chrono_literals;
#include "runtime/core/limits.def"
}  // namespace troupe::core::limits
