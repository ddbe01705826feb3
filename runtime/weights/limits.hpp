// Bounds of the weight channel (limits.def) as constants; users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::weights::limits {
using namespace std::chrono_literals;
#include "runtime/weights/limits.def"
}  // namespace troupe::weights::limits
