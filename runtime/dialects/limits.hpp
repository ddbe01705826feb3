// The constants of limits.def: bounds of requests and responses.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::dialects::limits {
#include "runtime/dialects/limits.def"
}
