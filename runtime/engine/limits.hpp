// The constants of limits.def: bounds of a generation engine that no setting changes.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::engine::limits {
using namespace std::chrono_literals;
#include "runtime/engine/limits.def"
}  // namespace troupe::engine::limits
