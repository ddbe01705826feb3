// `troupe bench push`: new weights from this process to an engine in another, beside the machine's
// limits. docs/weights.md and docs/performance.md say what the figures mean.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

core::Result<void> bench_push(Words words);

}  // namespace troupe::app
