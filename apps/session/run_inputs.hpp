// Loads and checks the inputs of a PPO run before any role starts: the prompts, the held-out
// problems, and for a run in one process the model and the reward. Called on the thread of the
// `train` command.
#pragma once

#include "actors/data/dataset_prompts.hpp"
#include "actors/reward/reward_calls.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::session {

// A set of held-out prompts; `name` is "" for that of eval.dataset.
struct HeldOutInputs {
  std::string name;
  std::unique_ptr<actors::data::DatasetPrompts> prompts;
};

struct RunInputs {
  std::unique_ptr<actors::data::DatasetPrompts> prompts;
  std::vector<HeldOutInputs> evaluation;  // that of eval.dataset first, then those of eval.sets
  std::vector<std::string> notes;         // what the user should know
  // actors::ScoringOptions::text_ends by the policy's tokenizer.
  std::function<std::vector<std::uint32_t>(const std::vector<std::int32_t>& tokens)> text_ends;
  // For roles of this process.
  std::unique_ptr<model::ParamStore> params;
  std::unique_ptr<actors::reward::RewardCalls>
      reward;  // null without a rule, Python file or server
};

// `models`: load the policy's weights and the reward, too, for roles of this process; else both are
// null. The roles of learned reward models load these themselves.
core::Result<RunInputs> load_inputs(const config::TrainConfig& config, bool models);

}  // namespace troupe::session
