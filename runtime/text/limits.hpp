// Bounds of chat templates and tokenizers; users cannot change them. Constants only.
#pragma once

#include "runtime/core/limit.hpp"

namespace troupe::text::limits {
#include "runtime/text/limits.def"
}
