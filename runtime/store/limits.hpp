// The constants of limits.def: bounds of safetensors files, which no setting changes.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::store::limits {
#include "runtime/store/limits.def"
}
