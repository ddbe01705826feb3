// Bounds of the hub's client as constants; users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

#include <chrono>

namespace troupe::hub::limits {
#include "apps/hub/limits.def"
}
