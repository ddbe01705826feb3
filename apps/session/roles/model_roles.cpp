#include "apps/session/roles/model_roles.hpp"

#include "actors/reward/model_reward.hpp"
#include "apps/session/roles/make_reward.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "kernels/ops.hpp"
#include "runtime/config/eval_sets.hpp"
#include "runtime/config/reward_list.hpp"
#include "runtime/config/reward_names.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/device_check.hpp"
#include "runtime/model/params.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <set>

namespace troupe::session {
namespace {

// Makes the seed of a critic's fresh score head differ from all other seeds from train.seed.
constexpr std::uint64_t kCriticHead = 0x637269746963;

// Checks that the model can read what the policy writes, or the rows that it learns from, whose
// length is checked with them.
core::Result<void> check_fits(const config::TrainConfig& config,
                              const model::ModelSpec& spec,
                              const char* key,
                              const std::filesystem::path& folder) {
  const std::int64_t longest = config.method != config::kPpo
                                   ? 0
                                   : config.data.prompt_max_len + config.rollout.max_new_tokens;
  if (spec.context < longest) {
    return core::fail(ErrorCode::kConfig,
                      std::string(key) + ": " + folder.string() + " has a context of " +
                          std::to_string(spec.context) +
                          " tokens, --data.prompt_max_len and "
                          "--rollout.max_new_tokens together ask for " +
                          std::to_string(longest),
                      "lower one of them");
  }
  TROUPE_TRY_ASSIGN(policy, trained_folder(config));
  TROUPE_TRY_ASSIGN(policy_spec, model::read_spec(policy));
  if (spec.vocab == policy_spec.vocab) return {};
  return core::fail(ErrorCode::kConfig,
                    std::string(key) + ": " + folder.string() + " has a vocabulary of " +
                        std::to_string(spec.vocab) + " tokens, the policy's is " +
                        std::to_string(policy_spec.vocab),
                    "it reads the policy's tokens, so give a model with the same tokenizer");
}

// Adds pieces of at most `size` tokens; leaves out a last piece of one token, which has nothing to
// predict.
void add_pieces(const std::vector<std::int32_t>& tokens,
                std::size_t size,
                std::vector<std::vector<std::int32_t>>& to) {
  for (std::size_t begin = 0; begin + 1 < tokens.size(); begin += size) {
    const std::size_t end = std::min(begin + size, tokens.size());
    if (end - begin < 2) return;
    to.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                    tokens.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

core::Result<std::shared_ptr<const learn::PtxTexts>> load_texts(
    const config::TrainConfig& config, const std::filesystem::path& model) {
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(model));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(model));
  data::DatasetColumns columns;
  columns.input_key = config.data.input_key;
  columns.known_formats = false;
  columns.add_special_tokens = config.data.add_special_tokens;
  TROUPE_TRY_ASSIGN(rows, data::load_prompts(config.data.pretrain_dataset, columns));
  auto texts = std::make_shared<learn::PtxTexts>();
  texts->coef = config.actor.ptx_coef;
  texts->seed = seed_of(config);
  const auto size =
      static_cast<std::size_t>(std::min<std::int64_t>(config.train.micro_tokens_max, spec.context));
  for (const data::PromptRow& row : rows) {
    if (!row.messages.empty()) {
      return core::fail(core::ErrorCode::kData,
                        row.where + ": data.pretrain_dataset holds texts, this row has messages");
    }
    TROUPE_TRY_ASSIGN(tokens, tokenizer.ids(row.prompt, columns.add_special_tokens));
    if (!tokenizer.eos_ids().empty()) tokens.push_back(tokenizer.eos_ids().front());
    add_pieces(tokens, size, texts->texts);
  }
  if (texts->texts.empty()) {
    return core::fail(core::ErrorCode::kData,
                      config.data.pretrain_dataset + ": no text has two tokens");
  }
  return std::shared_ptr<const learn::PtxTexts>(std::move(texts));
}

// The sets of a configuration that has passed its rules.
std::vector<config::HeldOutSet> held_out_sets(const config::TrainConfig& config) {
  auto sets = config::eval_sets(config);
  TROUPE_CHECK(sets.has_value(), "the rules of the configuration know its held-out sets");
  return std::move(*sets);
}

// The items of a configuration that has passed its rules.
std::vector<config::ListedReward> listed(const config::TrainConfig& config) {
  auto items = config::listed_rewards(config);
  TROUPE_CHECK(items.has_value(), "the rules of the configuration know its rewards");
  return std::move(*items);
}

// The kind of reward of a configuration that has one.
RewardPart::Kind kind_of(const config::TrainConfig& one) {
  if (!one.reward.judge.empty()) return RewardPart::Kind::kJudge;
  if (!one.reward.model_name_or_path.empty()) return RewardPart::Kind::kModel;
  if (!one.reward.process.model_name_or_path.empty()) return RewardPart::Kind::kProcess;
  return RewardPart::Kind::kSource;
}
std::string folder_of(const config::TrainConfig& one) {
  const auto& models = one.reward.model_name_or_path;
  return models.empty() ? one.reward.process.model_name_or_path : models.front();
}

// Gives the rewards of a run and of its held-out sets their names and roles.
class PartNames {
 public:
  // `set`: "" for the run's own.
  std::vector<RewardPart> parts_of(const config::TrainConfig& config, const std::string& set) {
    using Kind = RewardPart::Kind;
    std::set<std::string> names;
    std::vector<RewardPart> parts;
    // What we name ourselves: no file or folder takes such a name from it.
    const bool feedback = config.reward.feedback || has_environment(config);
    const std::set<std::string> ours = {config.reward.judge.empty() ? "" : "judge",
                                        feedback ? "feedback" : ""};
    names.insert(ours.begin(), ours.end());
    const auto add = [&](Kind kind, const std::string& name, const std::string& folder,
                         const config::ListedReward* item = nullptr) {
      RewardPart part;
      part.kind = kind;
      const bool is_ours = item == nullptr && (kind == Kind::kJudge || kind == Kind::kFeedback);
      part.name = is_ours ? name : unique(name, names);
      part.folder = folder;
      part.set = set;
      part.listed = item != nullptr;
      std::string instance = kind == Kind::kSource && item == nullptr ? "0" : part.name;
      if (!set.empty()) instance = "eval-" + set + "-" + part.name;
      part.role =
          kind == Kind::kFeedback ? actors::kFeedbackPeer : "reward/" + unique(instance, roles_);
      const std::size_t place = parts.size();
      if (place < config.reward.weights.size()) part.weight = config.reward.weights[place];
      if (item != nullptr) part.weight = item->weight;
      parts.push_back(std::move(part));
    };
    const auto& reward = config.reward;
    if (!reward.rule.empty() || !reward.python.empty() || !reward.http.empty()) {
      add(Kind::kSource, config::name_of_reward(config), "");
      if (set.empty()) names.insert("0");  // the role "reward/0" is taken
    }
    if (!reward.judge.empty()) add(Kind::kJudge, "judge", "");
    for (const std::string& folder : reward.model_name_or_path)
      add(Kind::kModel, config::name_of_folder(folder), folder);
    const std::string& process = reward.process.model_name_or_path;
    if (!process.empty()) add(Kind::kProcess, config::name_of_folder(process), process);
    for (const config::ListedReward& item : listed(config)) {
      add(kind_of(item.config), item.name, folder_of(item.config), &item);
    }
    if (feedback) add(Kind::kFeedback, "feedback", "");
    return parts;
  }

 private:
  static std::string unique(const std::string& name, std::set<std::string>& taken) {
    std::string one = name;
    for (int i = 2; !taken.insert(one).second; ++i)
      one = name + "-" + std::to_string(i);
    return one;
  }

  std::set<std::string> roles_;  // "0", "judge": without their kind
};

// Where the critic starts, and which key says so.
struct CriticSource {
  std::string from;
  const char* key = "critic.model_name_or_path";
};

CriticSource critic_source(const config::TrainConfig& config) {
  if (!config.critic.model_name_or_path.empty()) return {config.critic.model_name_or_path};
  if (std::string folder = first_reward_model(config); !folder.empty())
    return {std::move(folder), "reward.model_name_or_path, where the critic starts"};
  return {config.actor.model_name_or_path, "actor.model_name_or_path"};
}

}  // namespace

core::Result<void> check_frozen_folder(const config::TrainConfig& config,
                                       const std::string& from,
                                       const char* key) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(from));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  return check_fits(config, spec, key, folder);
}

core::Result<void> check_reward_models(const config::TrainConfig& config, bool as_chat) {
  for (const RewardPart& part : reward_parts(config)) {
    if (part.kind == RewardPart::Kind::kModel) {
      TROUPE_TRY_ASSIGN(folder, model::resolve_model(part.folder));
      TROUPE_TRY(actors::reward::check_reward_folder(folder, as_chat));
    } else if (part.kind == RewardPart::Kind::kProcess) {
      TROUPE_TRY_ASSIGN(process, process_options(config_of(config, part)));
      process.columns.apply_chat_template = as_chat;
      TROUPE_TRY(actors::reward::check_process_folder(process));
    }
  }
  return {};
}

core::Result<void> check_model_roles(const config::TrainConfig& config) {
  TROUPE_TRY(check_reward_models(config, config.data.apply_chat_template));
  for (const RewardPart& part : reward_parts(config)) {
    if (part.kind != RewardPart::Kind::kJudge) continue;
    config::TrainConfig own = config_of(config, part);
    // Where another node asks the judge, the key is there.
    if (!runs_here(config, "reward")) own.reward.judge_key.clear();
    TROUPE_TRY(make_judge(own));
  }
  if (has_critic(config)) {
    const CriticSource source = critic_source(config);
    TROUPE_TRY(check_frozen_folder(config, source.from, source.key));
  }
  if (has_reference(config) && !config.ref.model_name_or_path.empty()) {
    TROUPE_TRY(
        check_frozen_folder(config, config.ref.model_name_or_path, "ref.model_name_or_path"));
  }
  return {};
}

core::Result<learn::TrainerSettings> policy_settings(const config::TrainConfig& config,
                                                     std::uint64_t updates,
                                                     const std::filesystem::path& model) {
  learn::TrainerSettings settings = trainer_settings(config, updates);
  if (config.data.pretrain_dataset.empty()) return settings;
  TROUPE_TRY_SET(settings.ptx, load_texts(config, model));
  return settings;
}

learn::CriticSettings critic_settings(const config::TrainConfig& config,
                                      std::uint64_t updates,
                                      const model::ModelSpec& spec) {
  learn::CriticSettings settings;
  const learn::TrainerSettings policy = trainer_settings(config, updates);
  settings.batch = policy.batch;
  settings.total_steps = policy.total_steps;
  settings.value_clip = config.critic.value_clip;
  settings.save_dtype = save_dtype(config);
  settings.optim = optim_of(config.critic, config);
  settings.optim.gradient_checkpointing_enable = config.actor.gradient_checkpointing_enable;
  settings.optim.freeze_pad_embedding = config.actor.freeze_pad_embedding;
  if (config.reward.normalize == config::Normalize::kStored) {
    settings.scale = 1 / spec.score_std;
    settings.shift = -spec.score_mean / spec.score_std;
  }
  return settings;
}

core::Result<MadeCritic> make_critic(const config::TrainConfig& config,
                                     std::uint64_t updates,
                                     core::TeamRunner& team,
                                     learn::Ranks ranks,
                                     const model::ElementsToRead& read) {
  const CriticSource source = critic_source(config);
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(source.from));
  const std::uint64_t seed = core::derive_seed(seed_of(config), kCriticHead);
  TROUPE_TRY_ASSIGN(params, model::load_elements(folder, model::HeadKind::kScore, seed, read));
  TROUPE_TRY(check_fits(config, params->spec(), source.key, folder));
  auto settings = critic_settings(config, updates, params->spec());
  settings.optim.ranks = ranks;
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(trainer, trainers->critic(std::move(params), settings, team));
  return MadeCritic{std::move(trainer), folder};
}

core::Result<std::shared_ptr<const model::PackedWeights>> frozen_weights(
    const config::TrainConfig& config,
    const std::string& from,
    const char* key,
    core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(from));
  TROUPE_TRY_ASSIGN(params, model::load_model(folder));
  TROUPE_TRY(check_fits(config, params->spec(), key, folder));
  const std::string section(key, std::string_view(key).find('.'));
  TROUPE_TRY(model::check_memory(params->spec(), team.memory(), section));
  auto packed =
      std::make_shared<model::PackedWeights>(params->spec(), forward_dtype(config), team.memory());
  team.run([&](core::Team member) {
    kernels::flush_denormals();
    packed->fill(member, *params, 0);
  });
  std::shared_ptr<const model::PackedWeights> result = std::move(packed);
  return result;
}

core::Result<std::shared_ptr<const model::PackedWeights>> reference_weights(
    const config::TrainConfig& config, core::TeamRunner& team) {
  const bool own = !config.ref.model_name_or_path.empty();
  return frozen_weights(config,
                        own ? config.ref.model_name_or_path : config.actor.model_name_or_path,
                        "ref.model_name_or_path", team);
}

std::vector<RewardPart> run_rewards(const config::TrainConfig& config) {
  PartNames names;
  return names.parts_of(config, "");
}

std::string first_reward_model(const config::TrainConfig& config) {
  for (const RewardPart& part : run_rewards(config))
    if (part.kind == RewardPart::Kind::kModel) return part.folder;
  return {};
}

std::vector<RewardPart> reward_parts(const config::TrainConfig& config) {
  PartNames names;
  std::vector<RewardPart> parts = names.parts_of(config, "");
  for (const config::HeldOutSet& set : held_out_sets(config)) {
    if (!set.own_rewards) continue;
    for (RewardPart& part : names.parts_of(set.config, set.name))
      parts.push_back(std::move(part));
  }
  return parts;
}

core::Result<actors::reward::ProcessRewardOptions> process_options(
    const config::TrainConfig& config) {
  const auto& own = config.reward.process;
  actors::reward::ProcessRewardOptions options;
  TROUPE_TRY_SET(options.folder, model::resolve_model(own.model_name_or_path));
  options.rows_max = config.train.micro_tokens_max;
  options.gives_steps = own.reduce == "steps";
  options.reduce =
      actors::reward::step_reduce(own.reduce).value_or(actors::reward::StepReduce::kSum);
  options.take(own);
  options.columns.take(config.data);
  return options;
}

core::Result<std::unique_ptr<actors::reward::RewardSource>> make_process_reward(
    const config::TrainConfig& config, core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(options, process_options(config));
  return actors::reward::make_process_reward(std::move(options), team);
}

config::TrainConfig config_of(const config::TrainConfig& config, const RewardPart& part) {
  for (const config::HeldOutSet& set : held_out_sets(config)) {
    if (!part.set.empty() && set.name == part.set) return set.config;
  }
  if (!part.listed) return config;
  for (config::ListedReward& item : listed(config))
    if (item.name == part.name) return std::move(item.config);
  return config;
}

core::Result<std::unique_ptr<actors::reward::RewardSource>> make_model_reward(
    const config::TrainConfig& config, const std::string& folder, core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(path, model::resolve_model(folder));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(path));
  TROUPE_TRY(model::check_memory(spec, team.memory(), "reward"));
  actors::reward::ModelRewardOptions options;
  options.folder = path;
  options.rows_max = config.train.micro_tokens_max;
  options.normalise = config.reward.normalize == config::Normalize::kStored;
  options.columns.take(config.data);
  return actors::reward::make_model_reward(std::move(options), team);
}

}  // namespace troupe::session
