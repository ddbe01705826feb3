// Runs `troupe train sft|pretrain|rm|dpo|...`: optimiser steps over rows in a seeded order,
// evaluations, checkpoints, and the model at the end. The roles are those of any run (ADR
// 0027), in one process unless the trainer has several ranks or a `cluster` key asks for a company.
// The run folder has the layout of PPO runs (docs/run_folder.md).
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/result.hpp"

namespace troupe::session {

// Trains from the model or the last checkpoint to the end, on the thread of the command. An error
// after the first step says where the last whole step is saved, or why it is not.
core::Result<void> run_supervised(config::TrainConfig config, config::Origins origins);

}  // namespace troupe::session
