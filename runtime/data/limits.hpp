// Bounds on datasets; users cannot change them. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::data::limits {
#include "runtime/data/limits.def"
}
