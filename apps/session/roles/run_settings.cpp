#include "apps/session/roles/run_settings.hpp"

#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/config/environments.hpp"
#include "runtime/core/crc32c.hpp"

#include <cstdio>
#include <string>

namespace troupe::app {
namespace {

void set_objective(const config::TrainConfig& config, learn::AlgoSettings& algo) {
  algo.objective = config.algo.objective;
  algo.correction = config.algo.correction.type;
  algo.correction_low = config.algo.correction.low;
  algo.correction_high = config.algo.correction.high;
  algo.reducer = config.algo.reducer;
  const auto longest = static_cast<double>(config.rollout.max_new_tokens);
  algo.reducer_constant = config.algo.reducer_constant > 0 ? config.algo.reducer_constant : longest;
  algo.eps_clip_low = algo.eps_clip_high = config.actor.eps_clip;
  if (config.actor.eps_clip_low_high.size() == 2) {
    algo.eps_clip_low = config.actor.eps_clip_low_high[0];
    algo.eps_clip_high = config.actor.eps_clip_low_high[1];
  }
  algo.dual_clip = config.actor.dual_clip;
  algo.correction_max = config.algo.correction_max;
  algo.cispo_max = config.algo.cispo_max;
  algo.dpo_beta = config.algo.dpo_beta;
  algo.entropy_coef = config.actor.entropy_coef;
  algo.temperature = config.rollout.temperature;
  algo.samples_per_prompt = config.rollout.n_samples_per_prompt;
}

void set_kl(const config::TrainConfig& config, learn::AlgoSettings& algo) {
  algo.kl_coef = config.algo.kl.init_coef;
  algo.kl_estimator = config.algo.kl.estimator;
  algo.kl_in_loss = config.algo.kl.use_loss;
  algo.kl_per_sample = config.algo.kl.per_sample;
  algo.kl_target = config.algo.kl.target;
  algo.kl_horizon = config.algo.kl.horizon;
  algo.kl_stop = config.algo.kl.stop;
}

void set_advantage(const config::TrainConfig& config, learn::AlgoSettings& algo) {
  algo.estimator = config.algo.advantage.estimator;
  algo.gamma = config.algo.advantage.gamma;
  algo.lambda = config.algo.advantage.lambd;
  algo.vtrace_rho_max = config.algo.advantage.rho_max;
  algo.vtrace_c_max = config.algo.advantage.c_max;
  algo.whiten_std = !config.algo.advantage.no_std_norm;
  algo.own_advantage = !config.algo.advantage_file.empty();
  algo.shaping.normalise_running = config.reward.normalize == config::Normalize::kRunning;
  algo.shaping.overlong_tokens = config.reward.overlong_buffer_len;
  algo.shaping.overlong_factor = config.reward.overlong_penalty_factor;
  algo.shaping.response_tokens_max = config.rollout.max_new_tokens;
  algo.shaping.stop_properly_coef = config.reward.stop_properly_penalty_coef;
  algo.reward_clip_low = config.reward.clip_range[0];
  algo.reward_clip_high = config.reward.clip_range[1];
  algo.clip_order = config.reward.clip_order;
  algo.credit = config.algo.credit;
  algo.compares_steps = config.reward.process.baseline == "group";
}

learn::AlgoSettings algo_settings(const config::TrainConfig& config) {
  learn::AlgoSettings algo;
  algo.teacher_coef = has_teacher(config) ? config.teacher.coef : 0;
  algo.reward_coef = config.teacher.reward_coef;
  set_advantage(config, algo);
  set_objective(config, algo);
  set_kl(config, algo);
  return algo;
}

double beta_of(const config::TrainConfig& config) {
  switch (config.method) {
    case config::kKto:
      return config.kto.beta;
    case config::kOrpo:
      return config.orpo.beta;
    case config::kSimpo:
      return config.simpo.beta;
    case config::kCpo:
      return config.cpo.beta;
    case config::kBco:
      return config.bco.beta;
    default:
      return config.dpo.beta;
  }
}

learn::LossSettings loss_settings(const config::TrainConfig& config) {
  learn::LossSettings loss;
  loss.method = config::method_names(config.method);
  loss.beta = beta_of(config);
  if (config.method == config::kDpo) loss.pair_loss = config.dpo.loss;
  loss.label_smoothing = config.dpo.label_smoothing;
  loss.nll_coef = config.method == config::kSimpo ? config.simpo.nll_loss_coef
                  : config.method == config::kCpo ? config.cpo.nll_loss_coef
                                                  : config.dpo.nll_loss_coef;
  loss.length_mean = config.dpo.length_mean;
  loss.simpo_gamma = config.simpo.gamma;
  loss.discopop_tau = config.dpo.discopop_tau;
  loss.desirable_weight = config.kto.desirable_weight;
  loss.undesirable_weight = config.kto.undesirable_weight;
  loss.teaching = {config.distill.coef, config.distill.beta, config.distill.temperature};
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
  optim.checkpointing = config.actor.gradient_checkpointing_enable;
  optim.aux_loss_coef = config.actor.aux_loss_coef;
  optim.panels = forward_dtype(config);
  optim.trained.freeze = config.actor.freeze;
  optim.freeze_pad_embedding = config.actor.freeze_pad_embedding;
  optim.trained.lora.rank = config.actor.lora.rank;
  optim.trained.lora.alpha = config.actor.lora.alpha;
  optim.trained.lora.target = config.actor.lora.target;
  optim.trained.seed = static_cast<std::uint64_t>(config.train.seed);
  return optim;
}

learn::TrainerSettings trainer_settings(const config::TrainConfig& config, std::uint64_t updates) {
  learn::TrainerSettings settings;
  settings.algo = algo_settings(config);
  settings.optim = optim_settings(config);
  settings.batch.micro_tokens_max = config.train.micro_tokens_max;
  settings.batch.mini_batches = config.mini_batches();
  settings.batch.epochs = config.train.max_epochs;
  settings.total_steps =
      static_cast<std::int64_t>(updates) * config.mini_batches() * config.train.max_epochs;
  if (settings.algo.estimator->has_critic) {
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

actors::SamplingSpec sampling_spec(const config::TrainConfig& config) {
  actors::SamplingSpec sampling;
  sampling.temperature = static_cast<float>(config.rollout.temperature);
  sampling.top_p = static_cast<float>(config.rollout.top_p);
  sampling.min_p = static_cast<float>(config.rollout.min_p);
  sampling.top_k = static_cast<std::int32_t>(config.rollout.top_k);
  sampling.max_new_tokens = static_cast<std::int32_t>(config.rollout.max_new_tokens);
  sampling.stop = config.rollout.stop;
  return sampling;
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
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  engine::EngineLimits limits;
  limits.sequences_max = static_cast<std::int32_t>(config.rollout.max_num_seqs);
  limits.step_tokens_max = static_cast<std::int32_t>(config.rollout.max_num_batched_tokens);
  limits.kv_bytes_max = static_cast<std::uint64_t>(config.rollout.kv_cache_gb * kGiB);
  limits.prefix_cache = config.rollout.enable_prefix_caching;
  return limits;
}

core::Duration seconds_of(double seconds) {
  return std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(seconds));
}

actors::CriticLink critic_link(const config::TrainConfig& config) {
  if (!has_critic(config)) return {};
  return {actors::kCriticRole, config.train.staleness_max == 0};
}

actors::DataRoleOptions data_options(const config::TrainConfig& config) {
  actors::DataRoleOptions options;
  options.samples = static_cast<std::int32_t>(config.rollout.n_samples_per_prompt);
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  options.scoring.temperature = static_cast<float>(config.rollout.temperature);
  options.scoring.with_reference = has_reference(config);
  for (const TeacherPart& part : teacher_parts(config))
    options.scoring.teachers.push_back({part.role, part.name(), part.folder.empty()});
  options.scoring.patience.away_max = seconds_of(config.reward.away_s);
  options.rewards.clear();
  for (const RewardPart& part : run_rewards(config))
    options.rewards.push_back({part.name, part.role, part.weight});
  options.reward_formula = config.reward.formula;
  // A row has no last token in a forward pass.
  options.row_tokens_max = static_cast<std::uint64_t>(config.train.micro_tokens_max) + 1;
  if (config.algo.dynamic_filtering_enable) {
    options.filter.emplace();
    const config::Floats& range = config.algo.dynamic_filtering_range;
    if (!range.empty()) options.filter->range = actors::MeanRange{range[0], range[1]};
    // Without a number of updates the passes over the data decide when a run has had enough.
    if (config.train.max_steps == 0) {
      options.episodes = static_cast<std::uint64_t>(config.train.num_episodes);
    }
  }
  return options;
}

std::vector<actors::HeldOutRewards> held_out_rewards(
    const config::TrainConfig& config, const std::vector<actors::RunPlan::HeldOut>& sets) {
  const std::vector<RewardPart> parts = reward_parts(config);
  std::vector<actors::HeldOutRewards> all;
  for (const auto& set : sets) {
    actors::HeldOutRewards& own = all.emplace_back();
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
                                              actors::PromptSource& problems) {
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
  char line[128];
  std::snprintf(line, sizeof line, "%llu problems (crc32c %08x), %lld samples at temperature %g",
                static_cast<unsigned long long>(problems.size()), crc,
                static_cast<long long>(config.eval.n_samples_per_prompt), config.eval.temperature);
  return std::string(line);
}

actors::RunPlan run_plan(const config::TrainConfig& config,
                         std::uint64_t updates,
                         std::vector<actors::RunPlan::HeldOut> held_out) {
  actors::RunPlan plan;
  plan.updates = updates;
  plan.groups = static_cast<std::uint32_t>(config.rollout.batch_size);
  plan.samples = static_cast<std::int32_t>(config.rollout.n_samples_per_prompt);
  plan.episodes = has_environment(config);
  plan.environments_come = config.env.attached;
  plan.staleness_max = static_cast<std::uint64_t>(config.train.staleness_max);
  plan.sampling = sampling_spec(config);
  plan.straggler_timeout = seconds_of(config.rollout.straggler_timeout_s);
  plan.recompute_kv = config.rollout.kv_on_update == config::KvOnUpdate::kRecompute;
  const actors::DataRoleOptions data = data_options(config);
  plan.rewards = data.rewards;
  plan.reward_formula = data.reward_formula;
  plan.reward_away = data.scoring.patience.away_max;
  plan.filters = config.algo.dynamic_filtering_enable;
  plan.has_critic = has_critic(config);
  plan.save_critic = config.critic.save_value_network;
  plan.save_steps = static_cast<std::uint64_t>(config.ckpt.save_steps);
  plan.save_period = seconds_of(60 * config.ckpt.save_minutes);
  for (const auto& set : held_out)
    plan.evaluation_groups += set.groups;
  plan.evaluation_sets = std::move(held_out);
  plan.evaluation_samples = static_cast<std::int32_t>(config.eval.n_samples_per_prompt);
  plan.evaluation_temperature = static_cast<float>(config.eval.temperature);
  plan.evaluation_steps = static_cast<std::uint64_t>(config.eval.steps);
  return plan;
}

actors::RunPlan step_plan(const config::TrainConfig& config,
                          std::uint64_t steps,
                          std::uint64_t evaluation_rows) {
  actors::RunPlan plan;
  plan.unit = "step";
  plan.logs_groups = false;
  plan.updates = plan.logged_until = steps;  // every step can be taken again
  plan.groups = static_cast<std::uint32_t>(config.train.batch_size);
  plan.save_steps = static_cast<std::uint64_t>(config.ckpt.save_steps);
  plan.save_period = seconds_of(60 * config.ckpt.save_minutes);
  plan.evaluation_groups = static_cast<std::uint32_t>(evaluation_rows);
  plan.evaluation_steps = static_cast<std::uint64_t>(config.eval.steps);
  return plan;
}

}  // namespace troupe::app
