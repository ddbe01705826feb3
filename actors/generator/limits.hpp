// The bounds of generators, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::generator::limits {
using namespace std::chrono_literals;
#include "actors/generator/limits.def"
}  // namespace troupe::actors::generator::limits
