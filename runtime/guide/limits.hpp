// The constants of limits.def: bounds of grammars that guide samples.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::guide::limits {
using namespace std::chrono_literals;
#include "runtime/guide/limits.def"
}  // namespace troupe::guide::limits
