// The constants of limits.def: bounds of `troupe serve`, and defaults of bounds that its flags set.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::serving::limits {
#include "apps/serving/limits.def"
}
