// Bounds of the status of a run, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::app::limits {
using namespace std::chrono_literals;
#include "apps/session/limits.def"
}
