// Bounds of what is read from the cache of a hub, as constants; users cannot change them.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::names::limits {
#include "runtime/names/limits.def"
}
