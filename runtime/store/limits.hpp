// Bounds of safetensors files, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::store::limits {
#include "runtime/store/limits.def"
}
