// Bounds of the server of OpenAI's API, and the defaults of those that a flag sets. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::app::limits {
#include "apps/serving/limits.def"
}
