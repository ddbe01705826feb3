// Bounds of the transport between roles; users cannot change them. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::cluster::limits {
using namespace std::chrono_literals;
#include "runtime/cluster/limits.def"
}  // namespace troupe::cluster::limits
