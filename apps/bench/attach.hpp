// `troupe bench attach`: rewards come and go while a real run goes on, from processes of their own,
// some of which are killed. How soon does one score, and is every sample scored once, by the set of
// its ticket?
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

core::Result<void> bench_attach(Words words);

}  // namespace troupe::app
