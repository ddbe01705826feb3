// The constants of limits.def: bounds of safetensors files and of the run folder's, which no
// setting changes.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::store::limits {
#include "runtime/store/limits.def"
}
