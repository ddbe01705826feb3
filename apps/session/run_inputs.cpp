#include "apps/session/run_inputs.hpp"

#include "actors/formula/reward_formula.hpp"
#include "apps/cli/end_tokens.hpp"
#include "apps/session/reward_columns.hpp"
#include "apps/session/roles/cache_need.hpp"
#include "apps/session/roles/make_reward.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/config/eval_sets.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/data/answer_end.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/stream_decoder.hpp"

#include <map>

namespace troupe::session {
namespace {

core::Result<std::unique_ptr<actors::reward::RewardCalls>> made(const config::TrainConfig& config,
                                                                const RewardPart& part) {
  const config::TrainConfig own = config_of(config, part);
  return part.kind == RewardPart::Kind::kJudge ? make_judge(own) : make_reward(own);
}

// Which columns the configured rewards read besides the texts. Skips a reward that cannot be loaded
// here: its own role will report that.
actors::RewardReads read_by_rewards(const config::TrainConfig& config) {
  actors::RewardReads read;
  for (const RewardPart& part : reward_parts(config)) {
    if (part.kind == RewardPart::Kind::kModel) {
      data::DatasetColumns columns;
      columns.take(config.data);
      for (std::string& name : data::prompt_columns(columns))
        read.columns.push_back(std::move(name));
    } else if (part.kind == RewardPart::Kind::kFeedback) {
      continue;  // comes with the samples
    } else if (auto source = made(config, part)) {
      const actors::RewardReads own = (*source)->reads();
      read.all_columns = read.all_columns || own.all_columns;
      read.columns.insert(read.columns.end(), own.columns.begin(), own.columns.end());
      read.messages = read.messages || own.messages;
    }
  }
  if (const auto formula = actors::formula::RewardFormula::parse(config.reward.formula)) {
    for (const std::string& column : formula->columns())
      read.columns.push_back(column);
  }
  return read;
}

core::Result<std::unique_ptr<actors::data::DatasetPrompts>> load_prompts(
    const config::TrainConfig& config,
    bool training,
    const text::Tokenizer& tokenizer,
    const text::ChatTemplate* chat) {
  actors::data::DatasetPromptsOptions options;
  options.files = training ? config.data.prompt_dataset : config.eval.dataset;
  options.columns.take(config.data);
  options.columns.max_samples = training ? static_cast<std::uint64_t>(config.data.max_samples) : 0;
  options.prompt_tokens_max = static_cast<std::uint64_t>(config.data.prompt_max_len);
  options.drop_too_long = config.data.drop_too_long;
  options.row_bytes_max = core::limits::kRow_bytes_max;
  options.reads = [&config] { return read_by_rewards(config); };
  if (training) options.domains = domains_of(config);
  if (training) options.shares = config.data.probs;
  options.shuffle = training;
  if (training) options.shuffle_buffer = static_cast<std::uint64_t>(config.data.shuffle_buffer);
  options.seed = seed_of(config);
  return actors::data::DatasetPrompts::load(options, tokenizer, chat);
}

// `set`: of eval.sets, whose rewards `config` has; "": the run's.
core::Result<void> check_formula(const config::TrainConfig& config, const std::string& set = "") {
  auto formula = actors::formula::RewardFormula::parse(config.reward.formula);
  auto fit = formula ? formula->check(data_options(config).rewards) : formula.failure();
  if (fit) return {};
  if (!set.empty()) return core::fail(fit.error().within("eval.sets: " + set + ": formula"));
  return core::fail(ErrorCode::kConfig, "reward.formula: " + fit.error().message,
                    "change --reward.formula (docs/algorithms.md)");
}

core::Result<void> check_lengths(const config::TrainConfig& config, const model::ModelSpec& spec) {
  const std::int64_t longest = config.data.prompt_max_len + config.rollout.max_new_tokens;
  if (longest <= spec.context) return {};
  return core::fail(
      ErrorCode::kConfig,
      "--data.prompt_max_len " + std::to_string(config.data.prompt_max_len) +
          " and --rollout.max_new_tokens " + std::to_string(config.rollout.max_new_tokens) +
          " together exceed the model's context of " + std::to_string(spec.context) + " tokens",
      "lower one of them");
}

// Checks that the longest possible sample (for online_dpo, a pair) fits into one micro-batch.
core::Result<void> check_rows(const config::TrainConfig& config,
                              const actors::data::DatasetPrompts& prompts) {
  const auto longest = static_cast<std::int64_t>(prompts.longest());
  const std::int64_t together = config.algo.objective == "online_dpo" ? 2 : 1;
  const std::int64_t rows = longest + together * (config.rollout.max_new_tokens - 1);
  if (rows <= config.train.micro_tokens_max) return {};
  return core::fail(ErrorCode::kConfig,
                    "--train.micro_tokens_max " + std::to_string(config.train.micro_tokens_max) +
                        " has no room for the longest sample: a prompt of " +
                        std::to_string(longest) + " tokens with --rollout.max_new_tokens " +
                        std::to_string(config.rollout.max_new_tokens) + " is " +
                        std::to_string(rows) + " rows",
                    "raise it or ask for shorter responses");
}

// An id that cannot be decoded adds no text.
std::vector<std::uint32_t> text_ends_of(const text::Tokenizer& tokenizer,
                                        const std::vector<std::int32_t>& tokens) {
  std::vector<std::uint32_t> ends;
  text::StreamDecoder decoder(tokenizer);
  std::uint32_t bytes = 0;
  for (const std::int32_t token : tokens) {
    if (const auto piece = decoder.push(token)) bytes += static_cast<std::uint32_t>(piece->size());
    ends.push_back(bytes);
  }
  return ends;
}

// Checks that rows have the columns without which a Python reward cannot be called. Each file is
// loaded once; one that cannot be loaded here is left to its role.
class ColumnCheck {
 public:
  core::Result<void> of(const config::TrainConfig& config,
                        const std::string& key,
                        const actors::data::DatasetPrompts& prompts) {
    core::ErrorList wrong;
    const RowColumns there{key,
                           [&prompts](const std::string& name) { return prompts.has_column(name); },
                           prompts.columns()};
    for (const RewardPart& part : reward_parts(config)) {
      if (part.kind != RewardPart::Kind::kSource || !part.set.empty()) continue;
      const config::TrainConfig own = config_of(config, part);
      wrong.take(check_needs("reward.python", own.reward.python, needs_of(own), there));
    }
    return wrong.result();
  }

 private:
  const std::vector<std::string>& needs_of(const config::TrainConfig& own) {
    const auto [known, fresh] = needs_.try_emplace(own.reward.python);
    if (!fresh || own.reward.python.empty()) return known->second;
    if (const auto reward = make_reward(own)) known->second = (*reward)->needs();
    return known->second;
  }

  std::map<std::string, std::vector<std::string>> needs_;
};

// Loads the prompts of a dataset and checks what depends on them: rows, cache, columns.
core::Result<std::unique_ptr<actors::data::DatasetPrompts>> checked_prompts(
    const config::TrainConfig& config,
    bool training,
    const model::ModelSpec& spec,
    const text::Tokenizer& tokenizer,
    const text::ChatTemplate* chat,
    ColumnCheck& columns) {
  TROUPE_TRY_ASSIGN(prompts, load_prompts(config, training, tokenizer, chat));
  core::ErrorList wrong;
  if (training) wrong.take(check_rows(config, *prompts));
  wrong.take(check_cache(config, spec,
                         longest_group(config, prompts->longest(),
                                       training ? config.rollout.n_samples_per_prompt
                                                : config.eval.n_samples_per_prompt),
                         engines_on_host(config)));
  wrong.take(columns.of(config, training ? "data.prompt_dataset" : "eval.dataset", *prompts));
  TROUPE_TRY(wrong.result());
  return prompts;
}

}  // namespace

core::Result<RunInputs> load_inputs(const config::TrainConfig& config, bool models) {
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  core::ErrorList wrong;
  wrong.take(check_lengths(config, spec));
  wrong.take(check_role_devices(config));
  wrong.take(check_model_roles(config));
  wrong.take(check_teachers(config));
  wrong.take(check_formula(config));
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  TROUPE_TRY_ASSIGN(chat, text::load_template(folder, config.data.apply_chat_template));
  const text::ChatTemplate* chat_ptr = chat ? &*chat : nullptr;
  RunInputs inputs;
  inputs.text_ends = [tokenizer](const std::vector<std::int32_t>& tokens) {
    return text_ends_of(tokenizer, tokens);
  };
  ColumnCheck columns;
  const auto load = [&](const config::TrainConfig& of, bool training, const std::string& set) {
    auto prompts = checked_prompts(of, training, spec, tokenizer, chat_ptr, columns);
    if (!prompts) wrong.add(set.empty() ? prompts.error() : prompts.error().within(set));
    return prompts ? std::move(*prompts) : nullptr;
  };
  inputs.prompts = load(config, true, "");
  TROUPE_TRY_ASSIGN(sets, config::eval_sets(config));
  for (const config::HeldOutSet& set : sets) {
    wrong.take(check_formula(set.config, set.name));
    auto prompts = load(set.config, false, set.name.empty() ? "" : "eval.sets: " + set.name);
    inputs.evaluation.push_back({set.name, std::move(prompts)});
  }
  TROUPE_TRY(wrong.result());
  inputs.notes = inputs.prompts->notes();
  if (auto note = left_over_note(config, inputs.prompts->size()))
    inputs.notes.push_back(std::move(*note));
  bool chats = inputs.prompts->has_chats();
  for (const HeldOutInputs& set : inputs.evaluation) {
    for (const std::string& note : set.prompts->notes())
      inputs.notes.push_back(note);
    chats = chats || set.prompts->has_chats();
  }
  if (chats) {
    TROUPE_TRY(check_reward_models(config, true));
    const auto ends = cli::end_tokens(tokenizer.eos_ids(), spec);
    if (auto note = data::answer_end_note(tokenizer, *chat, ends))
      inputs.notes.push_back(std::move(*note));
  }
  if (auto note = model::longrope_note(spec)) inputs.notes.push_back(std::move(*note));
  if (auto note = lanes_note(config)) inputs.notes.push_back(std::move(*note));
  if (!models) return inputs;
  const std::vector<RewardPart> rewards = run_rewards(config);
  const bool has_source = !rewards.empty() && !rewards.front().listed &&
                          rewards.front().kind == RewardPart::Kind::kSource;
  if (has_source) {
    TROUPE_TRY_SET(inputs.reward, make_reward(config));
  }
  TROUPE_TRY_SET(inputs.params, model::load_model(folder));
  return inputs;
}

}  // namespace troupe::session
