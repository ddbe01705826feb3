// Bounds of the weight channel, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::weights::limits {
using namespace std::chrono_literals;
#include "runtime/weights/limits.def"
}  // namespace troupe::weights::limits
