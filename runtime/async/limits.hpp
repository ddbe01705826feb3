// Bounds of device threads and calls; users cannot change them. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::async::limits {
using namespace std::chrono_literals;
#include "runtime/async/limits.def"
}  // namespace troupe::async::limits
