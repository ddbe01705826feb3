// Bounds of chat templates, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::text::limits {
#include "runtime/text/limits.def"
}
