// Bounds of JSON from untrusted sources; users cannot change them. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::parse::limits {
#include "runtime/parse/limits.def"
}
