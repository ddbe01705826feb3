// Runs `troupe train sft|pretrain|rm|dpo|ipo|cdpo|kto` in one process: optimiser steps over rows in
// a seeded order, evaluations, checkpoints, and the model at the end. The run folder has the layout
// of PPO runs (docs/run_folder.md). Runs on the command's thread. Memory beside the model: the
// tokens of all rows, and one step's batch.
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

// Trains from the model or the last checkpoint to the end. An error after the first step says where
// the last whole step is saved, or why it is not.
core::Result<void> run_supervised(config::TrainConfig config, config::Origins origins);

}  // namespace troupe::app
