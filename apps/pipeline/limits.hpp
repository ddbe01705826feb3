// Bounds of a pipeline as constants; users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

#include <chrono>

namespace troupe::pipeline::limits {
#include "apps/pipeline/limits.def"
}
