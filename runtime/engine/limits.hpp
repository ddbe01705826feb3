// Bounds of a generation engine, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::engine::limits {
using namespace std::chrono_literals;
#include "runtime/engine/limits.def"
}  // namespace troupe::engine::limits
