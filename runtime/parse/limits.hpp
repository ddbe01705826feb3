// Bounds of JSON that others wrote, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::parse::limits {
#include "runtime/parse/limits.def"
}
