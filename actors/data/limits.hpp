// The bounds of the data role: what it asks, notes and logs, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::data::limits {
using namespace std::chrono_literals;
#include "actors/data/limits.def"
}  // namespace troupe::actors::data::limits
