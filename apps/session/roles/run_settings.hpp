// Turns a run's configuration into the settings of trainers, generators, the controller and the
// data role. Pure; the same for a run in one process and for node processes.
#pragma once

#include "actors/controller/run_plan.hpp"
#include "actors/data/data_role.hpp"
#include "actors/policy/critic_link.hpp"
#include "kernels/panels.hpp"
#include "runtime/config/table.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/supervised/settings.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::session {

// The table of configuration keys with what the learning code adds: the names of objectives,
// estimators and the like, and the rules for combining them. Made at the first call; immutable.
const config::Table& run_table();

// The optimiser of one section of the configuration: config.actor or config.critic.
template <class Section>
learn::OptimSettings optim_of(const Section& section, const config::TrainConfig& config) {
  learn::OptimSettings optim;
  optim.take(section);
  optim.take_train(config.train);
  optim.groups = *learn::parse_param_groups(optim.param_groups);
  return optim;
}

// Whether the run has a critic, or a role for a frozen reference model. (The reference of
// supervised training is part of its trainer.)
bool has_critic(const config::TrainConfig& config);
bool has_reference(const config::TrainConfig& config);
// No number of the run depends on its length: without warm-up and decay the learning rate does not.
bool may_grow(const config::TrainConfig& config);
// The row of the run's method, which is a supervised one.
const learn::Method& supervised_method(const config::TrainConfig& config);
// Whether the samples of the run are episodes of an environment.
bool has_environment(const config::TrainConfig& config);
// Whether the run starts roles of this kind itself, or in its own process.
bool runs_here(const config::TrainConfig& config, std::string_view kind);
std::uint64_t seed_of(const config::TrainConfig& config);
// The folder of the trained model. Errors: those of model::resolve_model.
core::Result<std::filesystem::path> trained_folder(const config::TrainConfig& config);

// AdamW, schedule, clipping and LoRA of the trained model (keys actor.*).
learn::OptimSettings optim_settings(const config::TrainConfig& config);

// The settings of the policy's trainer, without the texts of the ptx term; `updates`: of the whole
// run.
learn::TrainerSettings trainer_settings(const config::TrainConfig& config, std::uint64_t updates);

// What a user should know who asks for more lanes than an optimiser step has samples (or pairs).
std::optional<std::string> lanes_note(const config::TrainConfig& config);

// Updates (of method ppo) or optimiser steps (of the others) that the configuration asks for:
// train.max_steps, or as many as train.num_episodes or train.max_epochs passes over the rows of the
// dataset give. Error: kConfig when that is none.
core::Result<std::uint64_t> updates_of_run(const config::TrainConfig& config, std::uint64_t rows);
// For the user: how many rows (or prompts) of the last epoch do not fill an update; nothing when
// all do, or when the number of updates was given.
std::optional<std::string> left_over_note(const config::TrainConfig& config, std::uint64_t rows);

// Loss, optimiser and batches of the methods that learn from given answers; `steps`: of the run.
learn::SupervisedSettings supervised_settings(const config::TrainConfig& config,
                                              std::uint64_t steps);

// actor.param_dtype, the same for policy, reference and engines, so that their log-probs agree.
kernels::PanelDtype forward_dtype(const config::TrainConfig& config);

// ckpt.save_dtype, of the models that trainers save.
model::StorageDtype save_dtype(const config::TrainConfig& config);

engine::EngineLimits engine_limits(const config::TrainConfig& config);

// The address of the policy's critic, and whether the two train one after the other.
actors::policy::CriticLink critic_link(const config::TrainConfig& config);

// The options of the data role, without its callbacks.
actors::data::DataRoleOptions data_options(const config::TrainConfig& config);

// The rewards of the sets of held-out prompts, in their order.
std::vector<actors::data::HeldOutRewards> held_out_rewards(
    const config::TrainConfig& config,
    const std::vector<actors::controller::RunPlan::HeldOut>& sets);

// What decides the results of an evaluation of the same weights, in one line: the held-out problems
// (their number and a CRC of all and of eval.sets), how many samples each gets, and at which
// temperature.
core::Result<std::string> evaluation_settings(const config::TrainConfig& config,
                                              actors::data::PromptSource& problems);

// The controller's plan, without what a checkpoint and earlier sessions add. `updates`: of the
// whole run; `held_out`: the sets of held-out problems, with their sizes.
actors::controller::RunPlan run_plan(const config::TrainConfig& config,
                                     std::uint64_t updates,
                                     std::vector<actors::controller::RunPlan::HeldOut> held_out);

// The plan of a supervised method: its updates are steps, its groups rows.
actors::controller::RunPlan step_plan(const config::TrainConfig& config,
                                      std::uint64_t steps,
                                      std::uint64_t evaluation_rows);

}  // namespace troupe::session
