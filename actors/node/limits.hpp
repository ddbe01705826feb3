// The bounds of nodes: beats, figures, lines of their logs, as constants.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::actors::node::limits {
using namespace std::chrono_literals;
#include "actors/node/limits.def"
}  // namespace troupe::actors::node::limits
