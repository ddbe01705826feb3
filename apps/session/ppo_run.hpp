// Runs `troupe train ppo`: every kind of reinforcement learning.
#pragma once

#include "runtime/config/builder.hpp"
#include "runtime/core/result.hpp"

namespace troupe::session {

// Trains from the model or the last checkpoint to the end, on the thread of the command.
core::Result<void> run_ppo(config::TrainConfig config, config::Origins origins);

}  // namespace troupe::session
