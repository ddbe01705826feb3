// The bounds of environments as constants; the configuration cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::environment::limits {
using namespace std::chrono_literals;
#include "actors/environment/limits.def"
}  // namespace troupe::actors::environment::limits
