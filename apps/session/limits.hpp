// The time limits of a run's session as constants; the configuration cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::session::limits {
using namespace std::chrono_literals;
#include "apps/session/limits.def"
}  // namespace troupe::session::limits
