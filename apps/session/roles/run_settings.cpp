#include "apps/session/roles/run_settings.hpp"

#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/config/environments.hpp"
#include "runtime/core/crc32c.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <string>

namespace troupe::session {
namespace {

learn::AlgoSettings algo_settings(const config::TrainConfig& config) {
  learn::AlgoSettings algo;
  algo.take(config.algo);
  algo.take_actor(config.actor);
  algo.shaping.take(config.reward);
  algo.shaping.normalise_running = config.reward.normalize == config::Normalize::kRunning;
  algo.shaping.response_tokens_max = config.rollout.max_new_tokens;
  algo.reward_clip_low = config.reward.clip_range[0];
  algo.reward_clip_high = config.reward.clip_range[1];
  algo.compares_steps = config.reward.process.baseline == "group";
  algo.own_advantage = !config.algo.advantage_file.empty();
  algo.teacher_coef = has_teacher(config) ? config.teacher.coef : 0;
  algo.reward_coef = config.teacher.reward_coef;
  algo.temperature = config.rollout.temperature;
  algo.samples_per_prompt = config.rollout.n_samples_per_prompt;
  return algo;
}

learn::LossSettings loss_settings(const config::TrainConfig& config) {
  const learn::Method& method = supervised_method(config);
  learn::LossSettings loss;
  loss.take(config);
  loss.method = std::string(method.name);
  if (!method.beta.empty()) loss.beta = config::value_at<config::Float>(config, method.beta);
  if (!method.nll_key.empty())
    loss.nll_coef = config::value_at<config::Float>(config, method.nll_key);
  if (!method.pair_loss_key.empty())
    loss.pair_loss = config::value_at<config::Text>(config, method.pair_loss_key);
  return loss;
}

std::optional<core::Refusal> learning_refusal(const config::TrainConfig& config) {
  return config.method == config::kPpo ? learn::refusal(algo_settings(config))
                                       : learn::refusal(loss_settings(config));
}

std::optional<core::Refusal> groups_refusal(const config::TrainConfig& config) {
  const auto refused = [](const char* key,
                          const config::Texts& texts) -> std::optional<core::Refusal> {
    const auto groups = learn::parse_param_groups(texts);
    if (groups) return std::nullopt;
    return core::Refusal{key, std::string(groups.error().what()),
                         std::string(groups.error().advice())};
  };
  const auto actor = refused("actor.param_groups", config.actor.param_groups);
  return actor ? actor : refused("critic.param_groups", config.critic.param_groups);
}

}  // namespace

const config::Table& run_table() {
  static const config::Table table({learn::choice_tables(), {learning_refusal, groups_refusal}});
  return table;
}

const learn::Method& supervised_method(const config::TrainConfig& config) {
  return *learn::Chosen<learn::Method>(config::method_names(config.method));
}

bool may_grow(const config::TrainConfig& config) {
  const auto flat = [](const auto& section) {
    const bool falls = section.lr_scheduler != "constant" && section.min_lr_ratio != 1;
    return section.lr_warmup_ratio == 0 && !falls;
  };
  return flat(config.actor) && (!has_critic(config) || flat(config.critic));
}

std::uint64_t seed_of(const config::TrainConfig& config) {
  return static_cast<std::uint64_t>(config.train.seed);
}

core::Result<std::filesystem::path> trained_folder(const config::TrainConfig& config) {
  return model::resolve_model(config.actor.model_name_or_path);
}

bool runs_here(const config::TrainConfig& config, std::string_view kind) {
  return config.cluster.transport == config::Transport::kLoopback ||
         std::ranges::count(config.cluster.local_roles, kind) > 0;
}

bool has_environment(const config::TrainConfig& config) {
  return config.method == config::kPpo && config::environments_of(config) > 0;
}

bool has_critic(const config::TrainConfig& config) {
  return config.method == config::kPpo &&
         learn::Chosen<learn::Estimator>(config.algo.advantage.estimator)->has_critic;
}

bool has_reference(const config::TrainConfig& config) {
  return config.method == config::kPpo && algo_settings(config).needs_reference();
}

learn::OptimSettings optim_settings(const config::TrainConfig& config) {
  learn::OptimSettings optim = optim_of(config.actor, config);
  optim.take_model(config.actor);
  optim.panels = forward_dtype(config);
  optim.trained.freeze = config.actor.freeze;
  optim.trained.lora.take(config.actor.lora);
  optim.trained.seed = seed_of(config);
  return optim;
}

learn::TrainerSettings trainer_settings(const config::TrainConfig& config, std::uint64_t updates) {
  learn::TrainerSettings settings;
  settings.algo = algo_settings(config);
  settings.optim = optim_settings(config);
  settings.batch.take(config.train);
  settings.batch.mini_batches = config.mini_batches();
  settings.total_steps =
      static_cast<std::int64_t>(updates) * config.mini_batches() * config.train.max_epochs;
  if (settings.algo.advantage.estimator->has_critic) {
    settings.freezing_steps = static_cast<std::uint64_t>(config.critic.freezing_steps);
  }
  if (config.train.enable_ema) settings.ema_beta = config.train.ema_beta;
  settings.save_dtype = save_dtype(config);
  settings.dump_folder = config.run.path;
  return settings;
}

std::optional<std::string> lanes_note(const config::TrainConfig& config) {
  const std::int64_t samples = config.method == config::kPpo
                                   ? config.samples_per_update() / config.mini_batches()
                                   : config.train.batch_size;
  if (config.train.lanes <= samples) return std::nullopt;
  return "train.lanes is " + std::to_string(config.train.lanes) +
         ", but an optimiser step has only " + std::to_string(samples) +
         " samples: the other lanes stay empty";
}

namespace {

// The rows (or prompts) of all passes, and how many an update takes.
struct Passes {
  std::uint64_t rows = 0, batch = 1;
};
Passes passes_of(const config::TrainConfig& config, std::uint64_t rows) {
  const bool ppo = config.method == config::kPpo;
  const auto passes = ppo ? config.train.num_episodes : config.train.max_epochs;
  const auto batch = ppo ? config.rollout.batch_size : config.train.batch_size;
  return {rows * static_cast<std::uint64_t>(passes), static_cast<std::uint64_t>(batch)};
}

}  // namespace

core::Result<std::uint64_t> updates_of_run(const config::TrainConfig& config, std::uint64_t rows) {
  if (config.train.max_steps > 0) return static_cast<std::uint64_t>(config.train.max_steps);
  const bool ppo = config.method == config::kPpo;
  const Passes passes = passes_of(config, rows);
  const std::uint64_t updates = passes.rows / passes.batch;
  if (updates > 0) return updates;
  return core::fail(core::ErrorCode::kConfig,
                    "the dataset has " + std::to_string(rows) +
                        (ppo ? " prompts, fewer than one update takes"
                             : " rows, fewer than one optimiser step takes"),
                    std::string(ppo ? "lower --rollout.batch_size " : "lower --train.batch_size ") +
                        std::to_string(passes.batch) + " or raise " +
                        (ppo ? "--train.num_episodes" : "--train.max_epochs"));
}

std::optional<std::string> left_over_note(const config::TrainConfig& config, std::uint64_t rows) {
  const Passes passes = passes_of(config, rows);
  const std::uint64_t left = passes.rows % passes.batch;
  if (config.train.max_steps > 0 || left == 0) return std::nullopt;
  const bool ppo = config.method == config::kPpo;
  return std::to_string(left) + (ppo ? " prompt" : " row") + (left == 1 ? " is" : "s are") +
         " left over at the end of the last epoch: " + std::to_string(passes.rows) +
         " do not divide by " + (ppo ? "rollout.batch_size " : "train.batch_size ") +
         std::to_string(passes.batch);
}

learn::SupervisedSettings supervised_settings(const config::TrainConfig& config,
                                              std::uint64_t steps) {
  learn::SupervisedSettings settings;
  settings.loss = loss_settings(config);
  settings.optim = optim_settings(config);
  settings.micro_tokens_max = config.train.micro_tokens_max;
  settings.total_steps = static_cast<std::int64_t>(steps);
  settings.model = config.actor.model_name_or_path;
  settings.save_dtype = save_dtype(config);
  return settings;
}

model::StorageDtype save_dtype(const config::TrainConfig& config) {
  return config.ckpt.save_dtype == config::SaveDtype::kBf16 ? model::StorageDtype::kBf16
                                                            : model::StorageDtype::kF32;
}

kernels::PanelDtype forward_dtype(const config::TrainConfig& config) {
  constexpr kernels::PanelDtype kDtypes[] = {kernels::PanelDtype::kF32, kernels::PanelDtype::kBf16,
                                             kernels::PanelDtype::kBf16Compute};
  return kDtypes[static_cast<std::size_t>(config.actor.param_dtype)];
}

engine::EngineLimits engine_limits(const config::TrainConfig& config) {
  engine::EngineLimits limits;
  limits.take(config.rollout);
  return limits;
}

actors::policy::CriticLink critic_link(const config::TrainConfig& config) {
  if (!has_critic(config)) return {};
  return {actors::controller::kCriticRole, config.train.staleness_max == 0};
}

actors::data::DataRoleOptions data_options(const config::TrainConfig& config) {
  actors::data::DataRoleOptions options;
  options.samples = static_cast<std::int32_t>(config.rollout.n_samples_per_prompt);
  options.seed = seed_of(config);
  options.scoring.temperature = static_cast<float>(config.rollout.temperature);
  options.scoring.with_reference = has_reference(config);
  for (const TeacherPart& part : teacher_parts(config))
    options.scoring.teachers.push_back({part.role, part.name(), part.folder.empty()});
  options.scoring.patience.away_max = config::Seconds(config.reward.away_s);
  options.rewards.clear();
  for (const RewardPart& part : run_rewards(config))
    options.rewards.push_back({part.name, part.role, part.weight});
  options.reward_formula = config.reward.formula;
  // A row has no last token in a forward pass.
  options.row_tokens_max = static_cast<std::uint64_t>(config.train.micro_tokens_max) + 1;
  if (config.algo.dynamic_filtering_enable) {
    options.filter.emplace();
    const config::Floats& range = config.algo.dynamic_filtering_range;
    if (!range.empty()) options.filter->range = actors::data::MeanRange{range[0], range[1]};
    // Without a number of updates the passes over the data decide when a run has had enough.
    if (config.train.max_steps == 0) {
      options.episodes = static_cast<std::uint64_t>(config.train.num_episodes);
    }
  }
  return options;
}

std::vector<actors::data::HeldOutRewards> held_out_rewards(
    const config::TrainConfig& config,
    const std::vector<actors::controller::RunPlan::HeldOut>& sets) {
  const std::vector<RewardPart> parts = reward_parts(config);
  std::vector<actors::data::HeldOutRewards> all;
  for (const auto& set : sets) {
    actors::data::HeldOutRewards& own = all.emplace_back();
    own.prompts = set.groups;
    for (const RewardPart& part : parts) {
      if (part.set.empty() || part.set != set.name) continue;
      own.members.push_back({part.name, part.role, part.weight});
      own.formula = config_of(config, part).reward.formula;
    }
  }
  return all;
}

core::Result<std::string> evaluation_settings(const config::TrainConfig& config,
                                              actors::data::PromptSource& problems) {
  std::uint32_t crc = 0;
  for (std::uint64_t i = 0; i < problems.size(); ++i) {
    TROUPE_TRY_ASSIGN(problem, problems.at(i));
    crc =
        core::crc32c(problem.tokens.data(), problem.tokens.size() * sizeof(problem.tokens[0]), crc);
    for (const std::string* text : {&problem.text, &problem.label, &problem.columns})
      crc = core::text_crc32c(*text, crc);
  }
  for (const std::string& set : config.eval.sets)
    crc = core::text_crc32c(set, crc);
  return core::printed("%zu problems (crc32c %08x), %ld samples at temperature %g", problems.size(),
                       crc, config.eval.n_samples_per_prompt, config.eval.temperature);
}

actors::controller::RunPlan run_plan(const config::TrainConfig& config,
                                     std::uint64_t updates,
                                     std::vector<actors::controller::RunPlan::HeldOut> held_out) {
  actors::controller::RunPlan plan;
  plan.updates = updates;
  plan.groups = static_cast<std::uint32_t>(config.rollout.batch_size);
  plan.samples = static_cast<std::int32_t>(config.rollout.n_samples_per_prompt);
  plan.episodes = has_environment(config);
  plan.environments_come = config.env.attached;
  plan.staleness_max = static_cast<std::uint64_t>(config.train.staleness_max);
  plan.sampling.take(config.rollout);
  plan.straggler_timeout = config::Seconds(config.rollout.straggler_timeout_s);
  plan.recompute_kv = config.rollout.kv_on_update == config::KvOnUpdate::kRecompute;
  const actors::data::DataRoleOptions data = data_options(config);
  plan.rewards = data.rewards;
  plan.reward_formula = data.reward_formula;
  plan.reward_away = data.scoring.patience.away_max;
  plan.filters = config.algo.dynamic_filtering_enable;
  plan.has_critic = has_critic(config);
  plan.save_critic = config.critic.save_value_network;
  plan.take_saving(config.ckpt);
  for (const auto& set : held_out)
    plan.evaluation_groups += set.groups;
  plan.evaluation_sets = std::move(held_out);
  plan.evaluation.take(config.eval);
  return plan;
}

actors::controller::RunPlan step_plan(const config::TrainConfig& config,
                                      std::uint64_t steps,
                                      std::uint64_t evaluation_rows) {
  actors::controller::RunPlan plan;
  plan.unit = "step";
  plan.logs_groups = false;
  plan.updates = plan.logged_until = steps;  // every step can be taken again
  plan.groups = static_cast<std::uint32_t>(config.train.batch_size);
  plan.take_saving(config.ckpt);
  plan.evaluation_groups = static_cast<std::uint32_t>(evaluation_rows);
  plan.evaluation.take(config.eval);
  return plan;
}

}  // namespace troupe::session
