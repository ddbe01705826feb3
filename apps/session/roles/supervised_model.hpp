// Loads what the trainer of a supervised method is made from. Stateless; used by a run in one
// process and by node processes alike.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/ranks/ranks.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "runtime/model/load_elements.hpp"

#include <cstdint>
#include <memory>

namespace troupe::session {

// The weights that the run starts from; for a reward model with a score head, the folder's own or
// one drawn from train.seed. `read`: null for everything.
core::Result<std::unique_ptr<model::ParamStore>> supervised_params(
    const config::TrainConfig& config, const model::ElementsToRead& read = nullptr);

// `params`: those of supervised_params. Its reference is ref.model_name_or_path, or `params` as
// they are. `team` outlives the trainer. `ranks`: its gang, if it has one.
core::Result<std::unique_ptr<learn::SupervisedTrainer>> make_supervised(
    const config::TrainConfig& config,
    std::uint64_t steps,
    std::unique_ptr<model::ParamStore> params,
    core::TeamRunner& team,
    learn::Ranks ranks);

}  // namespace troupe::session
