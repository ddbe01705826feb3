// Time limits of the status service, not configurable. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::app::limits {
using namespace std::chrono_literals;
#include "apps/session/limits.def"
}  // namespace troupe::app::limits
