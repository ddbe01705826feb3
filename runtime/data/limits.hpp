// Bounds of datasets, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::data::limits {
#include "runtime/data/limits.def"
}
