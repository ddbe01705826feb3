// The bounds that several roles share: messages, nodes, what is told how often, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::limits {
using namespace std::chrono_literals;
#include "actors/protocol/limits.def"
}  // namespace troupe::actors::limits
