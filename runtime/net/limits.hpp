// The constants of limits.def: bounds of gateway, tunnels and HTTP.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::net::limits {
using namespace std::chrono_literals;
#include "runtime/net/limits.def"
}  // namespace troupe::net::limits
