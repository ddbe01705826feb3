// Bounds of frames, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::wire::limits {
#include "runtime/wire/limits.def"
}
