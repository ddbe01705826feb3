// Bounds of loggers as constants; users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

#include <chrono>

namespace troupe::loggers::limits {
#include "apps/loggers/limits.def"
}
