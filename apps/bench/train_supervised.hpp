// Timed steps of learn::SupervisedTrainer over random sequences (sft) or pairs (dpo, rm). Runs on
// the caller's thread and the given team; memory: one trainer, for dpo the panels of the reference.
#pragma once

#include "apps/bench/train_policy.hpp"

namespace troupe::app {

// Every step takes rows that no step had before: what the reference says of a row is kept, and a
// step must pay for it. `tokens` counts those of all sequences and answers, prompts once for each
// answer, as trainers that do not share prompts do.
core::Result<TrainFigures> time_supervised(const TrainJob& job, core::TeamRunner& team);

}  // namespace troupe::app
