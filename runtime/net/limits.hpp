// Bounds of the gateway between hosts and of HTTP, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::net::limits {
using namespace std::chrono_literals;
#include "runtime/net/limits.def"
}  // namespace troupe::net::limits
