// Bounds on tables; users cannot change them. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::tables::limits {
#include "runtime/tables/limits.def"
}
