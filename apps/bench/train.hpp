// `troupe bench train`: how fast the policy's trainer turns samples into optimiser steps, beside
// what this machine's multiply-adds allow, and where the time goes.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

// Prints one JSON line (--json) or a few lines for people.
core::Result<void> bench_train(Words words);

}  // namespace troupe::app
