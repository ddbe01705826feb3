// Bounds of the roles, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::limits {
using namespace std::chrono_literals;
#include "actors/limits.def"
}  // namespace troupe::actors::limits
