#include "apps/session/roles/run_settings.hpp"

#include "apps/session/roles/learn_settings.hpp"
#include "apps/session/roles/model_roles.hpp"

namespace troupe::app {

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
  options.temperature = static_cast<float>(config.rollout.temperature);
  options.with_reference = has_reference(config);
  options.patience.away_max = seconds_of(config.reward.away_s);
  options.rewards.clear();
  for (const RewardPart& part : reward_parts(config))
    options.rewards.push_back({part.name, part.role, part.weight});
  if (config.algo.dynamic_filtering_enable) {
    options.filter = actors::MeanRange{config.algo.dynamic_filtering_range[0],
                                       config.algo.dynamic_filtering_range[1]};
    // Without a number of updates the passes over the data decide when a run has had enough.
    if (config.train.max_steps == 0) {
      options.episodes = static_cast<std::uint64_t>(config.train.num_episodes);
    }
  }
  return options;
}

actors::RunPlan run_plan(const config::TrainConfig& config,
                         std::uint64_t updates,
                         std::uint64_t evaluation_prompts) {
  actors::RunPlan plan;
  plan.updates = updates;
  plan.groups = static_cast<std::uint32_t>(config.rollout.batch_size);
  plan.samples = static_cast<std::int32_t>(config.rollout.n_samples_per_prompt);
  plan.staleness_max = static_cast<std::uint64_t>(config.train.staleness_max);
  plan.sampling = sampling_spec(config);
  plan.straggler_timeout = seconds_of(config.rollout.straggler_timeout_s);
  plan.recompute_kv = config.rollout.kv_on_update == config::KvOnUpdate::kRecompute;
  const actors::DataRoleOptions data = data_options(config);
  plan.rewards = data.rewards;
  plan.reward_away = data.patience.away_max;
  plan.filters = config.algo.dynamic_filtering_enable;
  plan.has_critic = has_critic(config);
  plan.save_critic = config.critic.save_value_network;
  plan.save_steps = static_cast<std::uint64_t>(config.ckpt.save_steps);
  plan.evaluation_groups = static_cast<std::uint32_t>(evaluation_prompts);
  plan.evaluation_samples = static_cast<std::int32_t>(config.eval.n_samples_per_prompt);
  plan.evaluation_temperature = static_cast<float>(config.eval.temperature);
  plan.evaluation_steps = static_cast<std::uint64_t>(config.eval.steps);
  return plan;
}

}  // namespace troupe::app
