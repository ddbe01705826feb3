// Timed updates of a policy and its critic, as PPO has them: values, advantages, an update of each.
// Runs on the caller's thread and the given team; memory: two trainers and the groups.
#pragma once

#include "apps/bench/train_policy.hpp"

namespace troupe::app {

core::Result<TrainFigures> time_ppo(const TrainJob& job,
                                    const learn::TrainerSettings& settings,
                                    core::TeamRunner& team);

}  // namespace troupe::app
