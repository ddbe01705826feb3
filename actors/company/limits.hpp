// The bounds of the company: nodes, silence, restarts, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::company::limits {
using namespace std::chrono_literals;
#include "actors/company/limits.def"
}  // namespace troupe::actors::company::limits
