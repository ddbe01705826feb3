// Bounds of the server of OpenAI's API, none a user's choice. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::app::limits {
#include "apps/serving/limits.def"
}
