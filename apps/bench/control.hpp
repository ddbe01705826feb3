// `troupe bench control`: what a sample costs the head of a run (controller, prompts, tickets,
// rewards' answers, rollouts, ledger) over processes, and how much memory a node without a model
// takes.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

core::Result<void> bench_control(Words words);

}  // namespace troupe::app
