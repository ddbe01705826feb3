#include "apps/session/roles/model_roles.hpp"

#include "actors/reward/model_reward.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/device_check.hpp"
#include "runtime/model/params.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <set>

namespace troupe::app {
namespace {

using core::ErrorCode;

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
    return core::fail(ErrorCode::kConfig, std::string(key) + ": " + folder.string() +
                                              " has a context of " + std::to_string(spec.context) +
                                              " tokens, --data.prompt_max_len and "
                                              "--rollout.max_new_tokens together ask for " +
                                              std::to_string(longest) + "; lower one of them");
  }
  TROUPE_TRY_ASSIGN(policy, model::resolve_model(config.actor.model_name_or_path));
  TROUPE_TRY_ASSIGN(policy_spec, model::read_spec(policy));
  if (spec.vocab == policy_spec.vocab) return {};
  return core::fail(ErrorCode::kConfig,
                    std::string(key) + ": " + folder.string() + " has a vocabulary of " +
                        std::to_string(spec.vocab) + " tokens, the policy's is " +
                        std::to_string(policy_spec.vocab) +
                        "; it reads the policy's tokens, so give a model with the same tokenizer");
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
  TROUPE_TRY_ASSIGN(rows, data::load_prompts(config.data.pretrain_dataset, columns));
  auto texts = std::make_shared<learn::PtxTexts>();
  texts->coef = config.actor.ptx_coef;
  texts->seed = static_cast<std::uint64_t>(config.train.seed);
  const auto size =
      static_cast<std::size_t>(std::min<std::int64_t>(config.train.micro_tokens_max, spec.context));
  for (const data::PromptRow& row : rows) {
    if (!row.messages.empty()) {
      return core::fail(core::ErrorCode::kData,
                        row.where + ": data.pretrain_dataset holds texts, this row has messages");
    }
    TROUPE_TRY_ASSIGN(encoding, tokenizer.encode(row.prompt));
    std::vector<std::int32_t> tokens(encoding.ids.begin(), encoding.ids.end());
    if (!tokenizer.eos_ids().empty()) tokens.push_back(tokenizer.eos_ids().front());
    add_pieces(tokens, size, texts->texts);
  }
  if (texts->texts.empty()) {
    return core::fail(core::ErrorCode::kData,
                      config.data.pretrain_dataset + ": no text has two tokens");
  }
  return std::shared_ptr<const learn::PtxTexts>(std::move(texts));
}

std::string stem_of(const std::string& folder) {
  std::filesystem::path path = folder;
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

std::string name_of_source(const config::TrainConfig& config) {
  if (!config.reward.python.empty()) {
    return std::filesystem::path(config.reward.python).stem().string();
  }
  return config.reward.http.empty() ? config.reward.rule : "http";
}

// Where the critic starts, and which key says so.
struct CriticSource {
  std::string from;
  const char* key = "critic.model_name_or_path";
};

CriticSource critic_source(const config::TrainConfig& config) {
  if (!config.critic.model_name_or_path.empty()) return {config.critic.model_name_or_path};
  if (!config.reward.model_name_or_path.empty()) {
    return {config.reward.model_name_or_path.front(),
            "reward.model_name_or_path, where the critic starts"};
  }
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
  for (const std::string& name : config.reward.model_name_or_path) {
    TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
    TROUPE_TRY(actors::check_reward_folder(folder, as_chat));
  }
  return {};
}

core::Result<void> check_model_roles(const config::TrainConfig& config) {
  TROUPE_TRY(check_reward_models(config, config.data.apply_chat_template));
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
  settings.optim.checkpointing = config.actor.gradient_checkpointing_enable;
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
  const std::uint64_t seed =
      core::derive_seed(static_cast<std::uint64_t>(config.train.seed), kCriticHead);
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

std::vector<RewardPart> reward_parts(const config::TrainConfig& config) {
  std::vector<RewardPart> parts;
  std::set<std::string> names;
  const auto add = [&](const std::string& name, const std::string& folder) {
    std::string unique = name;
    for (int i = 2; !names.insert(unique).second; ++i)
      unique = name + "-" + std::to_string(i);
    RewardPart part{unique, folder.empty() ? "reward/0" : "reward/" + unique, folder, 1.0};
    if (parts.size() < config.reward.weights.size()) {
      part.weight = config.reward.weights[parts.size()];
    }
    parts.push_back(std::move(part));
  };
  if (!config.reward.rule.empty() || !config.reward.python.empty() || !config.reward.http.empty()) {
    add(name_of_source(config), "");
    names.insert("0");  // the role "reward/0" is taken
  }
  for (const std::string& folder : config.reward.model_name_or_path)
    add(stem_of(folder), folder);
  return parts;
}

core::Result<std::unique_ptr<actors::RewardSource>> make_model_reward(
    const config::TrainConfig& config, const std::string& folder, core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(path, model::resolve_model(folder));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(path));
  TROUPE_TRY(model::check_memory(spec, team.memory(), "reward"));
  actors::ModelRewardOptions options;
  options.folder = path;
  options.rows_max = config.train.micro_tokens_max;
  options.normalise = config.reward.normalize == config::Normalize::kStored;
  options.columns.as_chat = config.data.apply_chat_template;
  options.columns.input_key = config.data.input_key;
  options.columns.input_template = config.data.input_template;
  return actors::make_model_reward(std::move(options), team);
}

}  // namespace troupe::app
