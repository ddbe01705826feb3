// What a run is made from, loaded and checked before anything starts: the model, its tokenizer, the
// prompts, the held-out problems and the reward. Built by the command that trains, on its thread.
#pragma once

#include "actors/data/dataset_prompts.hpp"
#include "actors/reward/reward_source.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/model/params.hpp"
#include "runtime/text/tokenizer.hpp"

#include <filesystem>
#include <memory>
#include <vector>

namespace troupe::app {

struct RunInputs {
  std::filesystem::path model_folder;
  text::Tokenizer tokenizer;
  std::vector<std::int32_t> eos;
  std::unique_ptr<model::ParamStore> params;
  std::unique_ptr<actors::DatasetPrompts> prompts;
  std::unique_ptr<actors::DatasetPrompts> evaluation;  // null without eval.dataset
  std::unique_ptr<actors::RewardSource> reward;        // null without rule, Python file and server
  std::vector<std::string> notes;                      // what the user should know
};

// With `models`: the model's weights and the reward too, for roles of this process; else they are
// null. Learned reward models are loaded by their roles.
core::Result<RunInputs> load_inputs(const config::TrainConfig& config, bool models);

}  // namespace troupe::app
