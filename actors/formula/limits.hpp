// The bounds of reward formulas, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::formula::limits {
using namespace std::chrono_literals;
#include "actors/formula/limits.def"
}  // namespace troupe::actors::formula::limits
