// Bounds of a report as constants; users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::report::limits {
#include "apps/report/limits.def"
}
