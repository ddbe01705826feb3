// `troupe bench exact`: shows that the log-probs which the engine reports are the trainer's, bit
// for bit. The engine samples in this process, a second process of the same program computes the
// same log-probs with the training forward, and a third opinion comes from the scorer without
// gradients.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

// Prints one JSON line (--json) or a few lines for people. Errors: kNumeric when a bit differs.
core::Result<void> bench_exact(Words words);

}  // namespace troupe::app
