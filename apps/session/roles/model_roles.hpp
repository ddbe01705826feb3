// Loads what the roles that compute with a model need: the policy's texts for its ptx term (a
// language-model loss on pretraining texts), the critic with its trainer, the frozen reference, and
// the learned reward models. Used by runs in one process and by node processes alike, on the
// loading thread. Stateless.
#pragma once

#include "actors/reward/process_reward.hpp"
#include "actors/reward/reward_calls.hpp"
#include "actors/reward/reward_source.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/model/load_elements.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::session {

// The settings of the policy's trainer with the texts of the ptx term, read and tokenised.
// `updates`: of the whole run; `model`: the folder of the policy with its tokenizer. A text ends
// with the end token; one that is longer than the context or a micro-batch is cut into pieces.
// Errors: those of the files of data.pretrain_dataset, naming file and line.
core::Result<learn::TrainerSettings> policy_settings(const config::TrainConfig& config,
                                                     std::uint64_t updates,
                                                     const std::filesystem::path& model);

// The settings of the critic's trainer, without its ranks. `spec`: of the model that it starts
// from. It checkpoints activations as the policy does, and its panels are of f32.
learn::CriticSettings critic_settings(const config::TrainConfig& config,
                                      std::uint64_t updates,
                                      const model::ModelSpec& spec);

struct MadeCritic {
  std::unique_ptr<learn::CriticTrainer> trainer;
  std::filesystem::path folder;  // of the initial model, with its tokenizer
};

// Starts from critic.model_name_or_path, else the first reward model, else the policy's body with a
// fresh score head drawn from train.seed. `team` outlives it. `ranks`: its gang, if it has one.
// `read`: what it reads of its weights; null: everything.
// Error kConfig: another vocabulary than the policy's, or a context too short for its sequences.
core::Result<MadeCritic> make_critic(const config::TrainConfig& config,
                                     std::uint64_t updates,
                                     core::TeamRunner& team,
                                     learn::Ranks ranks = {},
                                     const model::ElementsToRead& read = nullptr);

// The weights of ref.model_name_or_path, else of the policy as it was before training. Error
// kConfig: another vocabulary than the policy's, or a context too short for its sequences.
core::Result<std::shared_ptr<const model::PackedWeights>> reference_weights(
    const config::TrainConfig& config, core::TeamRunner& team);

// The weights of the folder that the key names, packed as forward passes read them. Errors: as
// above.
core::Result<std::shared_ptr<const model::PackedWeights>> frozen_weights(
    const config::TrainConfig& config,
    const std::string& from,
    const char* key,
    core::TeamRunner& team);
// Makes those checks without reading weights.
core::Result<void> check_frozen_folder(const config::TrainConfig& config,
                                       const std::string& from,
                                       const char* key);

// One reward of the configuration.
struct RewardPart {
  // A rule, Python file or server; a judge; a reward model; a process reward model; what comes with
  // the episodes, which no role gives.
  enum class Kind { kSource, kJudge, kModel, kProcess, kFeedback };
  Kind kind = Kind::kSource;
  std::string name;    // in reward sets: a rule's, "http", a file's stem, a model folder's name
  std::string role;    // "reward/0", "reward/rm-small"; kFeedbackPeer, which is no role
  std::string folder;  // of a learned model as configured, else ""
  double weight = 1;
  std::string set;      // of eval.sets, whose prompts alone it scores; "": of the run
  bool listed = false;  // an item of reward.list, whose name it has
};

// The rule, Python file or server first, then the judge, then the models in order, then the process
// reward model, or the items of reward.list in its order; then the feedback; then those of the sets
// of eval.sets that have their own.
// Names are unique in a set, roles in all: a second folder of the same name gets "-2", and so does
// a file or an item called as the judge or the feedback of the run.
std::vector<RewardPart> reward_parts(const config::TrainConfig& config);

// The rewards of the run alone.
std::vector<RewardPart> run_rewards(const config::TrainConfig& config);

// The folder of the run's first reward model, as configured: where a critic without a model of its
// own starts. "" without one.
std::string first_reward_model(const config::TrainConfig& config);

// The configuration whose section `reward` has this part: the run's, that of its set, or that of
// its item of reward.list.
config::TrainConfig config_of(const config::TrainConfig& config, const RewardPart& part);

// Checks the folders of critic, reference and reward models before any role starts, so that a wrong
// one is reported as an error of the configuration.
core::Result<void> check_model_roles(const config::TrainConfig& config);

// The options of the run's process reward model.
core::Result<actors::reward::ProcessRewardOptions> process_options(
    const config::TrainConfig& config);

// Loads a process reward model as a reward source; `team` outlives it. Errors: those of
// actors::make_process_reward.
core::Result<std::unique_ptr<actors::reward::RewardSource>> make_process_reward(
    const config::TrainConfig& config, core::TeamRunner& team);

// Checks the folders of the reward models alone. `as_chat`: prompts are chats, so each model needs
// a chat template.
core::Result<void> check_reward_models(const config::TrainConfig& config, bool as_chat);

// Loads a learned reward model as a reward source; `team` outlives it. Errors: those of
// actors::make_model_reward.
core::Result<std::unique_ptr<actors::reward::RewardSource>> make_model_reward(
    const config::TrainConfig& config, const std::string& folder, core::TeamRunner& team);

}  // namespace troupe::session
