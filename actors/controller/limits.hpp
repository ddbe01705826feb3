// The bounds of the controller: tickets, generators, retries, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::controller::limits {
using namespace std::chrono_literals;
#include "actors/controller/limits.def"
}  // namespace troupe::actors::controller::limits
