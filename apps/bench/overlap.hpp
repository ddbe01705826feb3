// `troupe bench overlap`: a real run whose reward takes a given time, synchronous and asynchronous.
// How much of the shorter sides hides behind the longest, and how long does the generator idle?
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

core::Result<void> bench_overlap(Words words);

}  // namespace troupe::app
