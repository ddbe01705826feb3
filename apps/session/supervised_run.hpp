// A run of `troupe train sft|pretrain|rm|dpo|ipo|cdpo|kto`: one process, one model, optimiser steps
// over rows in a seeded order, evaluations, checkpoints, the model at the end. The run folder is
// that of PPO runs (docs/run_folder.md). On the command's thread; memory is bounded by one step's
// batch.
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

// From the model or the last checkpoint to the end. An error after the first step tells where the
// last whole step is saved.
core::Result<void> run_supervised(config::TrainConfig config, config::Origins origins);

}  // namespace troupe::app
