// Bounds of frames; users cannot change them. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::wire::limits {
#include "runtime/wire/limits.def"
}
