// What `train prm` reads at the steps of its rows, from the configuration and the tokenizer of the
// trained model. Pure functions.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/model/process_reward.hpp"
#include "runtime/text/tokenizer.hpp"

namespace troupe::session {

// Empty for other methods. kConfig, naming the key: a text that is not one token, or two that are
// the same token.
core::Result<data::StepMarks> step_marks(const config::TrainConfig& config,
                                         const text::Tokenizer& tokenizer);

// The marks as the config.json of a trained model keeps them.
model::ProcessReward process_reward(const config::TrainConfig& config);

}  // namespace troupe::session
