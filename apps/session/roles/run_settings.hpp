// What a run's configuration says of its controller, its data role and its critic. Pure.
#pragma once

#include "actors/controller/run_plan.hpp"
#include "actors/data/data_role.hpp"
#include "actors/policy/critic_link.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/clock.hpp"

#include <cstdint>

namespace troupe::app {

core::Duration seconds_of(double seconds);

// Where the policy finds its critic, and whether the two learn one after the other.
actors::CriticLink critic_link(const config::TrainConfig& config);

actors::DataRoleOptions data_options(const config::TrainConfig& config);

// `evaluation_prompts`: held-out problems; 0 without any.
actors::RunPlan run_plan(const config::TrainConfig& config,
                         std::uint64_t updates,
                         std::uint64_t evaluation_prompts);

}  // namespace troupe::app
