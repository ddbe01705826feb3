// The mapping from configuration keys to settings.
#include "apps/troupe/train/learn_settings.hpp"

#include <map>
#include <string>

namespace troupe::app {
namespace {

// The table checked the value; an unknown one here is a bug.
template <class Kind>
Kind kind_of(const std::map<std::string, Kind>& kinds, const std::string& name) {
  const auto found = kinds.find(name);
  TROUPE_CHECK(found != kinds.end(), "a choice of the configuration table without a meaning");
  return found->second;
}

}  // namespace

learn::TrainerSettings trainer_settings(const core::TrainConfig& config, std::uint64_t updates) {
  using learn::AdvantageKind;
  learn::TrainerSettings settings;
  learn::AlgoSettings& algo = settings.algo;
  algo.advantage = kind_of<AdvantageKind>({{"group_norm", AdvantageKind::kGrpo},
                                           {"grpo", AdvantageKind::kGrpo},
                                           {"dr_grpo", AdvantageKind::kDrGrpo},
                                           {"rloo", AdvantageKind::kRloo},
                                           {"reinforce_baseline", AdvantageKind::kReinforceBaseline}},
                                          config.algo.advantage.estimator);
  algo.objective = kind_of<learn::ObjectiveKind>(
      {{"ppo", learn::ObjectiveKind::kPpo}, {"decoupled", learn::ObjectiveKind::kDecoupled}},
      config.algo.objective);
  algo.reducer = kind_of<learn::Reducer>({{"token_mean", learn::Reducer::kTokenMean},
                                          {"sample_mean", learn::Reducer::kSampleMean}},
                                         config.algo.reducer);
  algo.kl_estimator = kind_of<learn::KlEstimator>(
      {{"k2", learn::KlEstimator::kK2}, {"k3", learn::KlEstimator::kK3}},
      config.algo.kl.estimator);
  algo.eps_clip_low = algo.eps_clip_high = config.actor.eps_clip;
  if (config.actor.eps_clip_low_high.size() == 2) {
    algo.eps_clip_low = config.actor.eps_clip_low_high[0];
    algo.eps_clip_high = config.actor.eps_clip_low_high[1];
  }
  algo.correction_max = config.algo.correction_max;
  algo.kl_coef = config.algo.kl.init_coef;
  algo.temperature = config.rollout.temperature;
  algo.reward_clip_low = config.reward.clip_range[0];
  algo.reward_clip_high = config.reward.clip_range[1];
  algo.entropy_coef = config.actor.entropy_coef;
  learn::OptimSettings& optim = settings.optim;
  optim.lr = config.actor.adam.lr;
  optim.beta1 = config.actor.adam.betas[0];
  optim.beta2 = config.actor.adam.betas[1];
  optim.eps = config.actor.adam.eps;
  optim.weight_decay = config.actor.adam.weight_decay;
  optim.grad_norm_max = config.actor.max_norm;
  optim.warmup_ratio = config.actor.lr_warmup_ratio;
  optim.lr_min_ratio = config.actor.min_lr_ratio;
  optim.nonfinite_steps_max = config.train.nonfinite_steps_max;
  settings.batch.micro_tokens_max = config.train.micro_tokens_max;
  settings.batch.mini_batches = config.mini_batches();
  settings.batch.epochs = config.train.max_epochs;
  settings.total_steps =
      static_cast<std::int64_t>(updates) * config.mini_batches() * config.train.max_epochs;
  return settings;
}

actors::SamplingSpec sampling_spec(const core::TrainConfig& config) {
  actors::SamplingSpec sampling;
  sampling.temperature = static_cast<float>(config.rollout.temperature);
  sampling.top_p = static_cast<float>(config.rollout.top_p);
  sampling.min_p = static_cast<float>(config.rollout.min_p);
  sampling.top_k = static_cast<std::int32_t>(config.rollout.top_k);
  sampling.max_new_tokens = static_cast<std::int32_t>(config.rollout.max_new_tokens);
  sampling.stop = config.rollout.stop;
  return sampling;
}

core::Result<std::uint64_t> updates_of_run(const core::TrainConfig& config,
                                           std::uint64_t prompts) {
  if (config.train.max_steps > 0) return static_cast<std::uint64_t>(config.train.max_steps);
  const auto groups = static_cast<std::uint64_t>(config.rollout.batch_size);
  const std::uint64_t updates =
      prompts * static_cast<std::uint64_t>(config.train.num_episodes) / groups;
  if (updates > 0) return updates;
  return core::fail(core::ErrorCode::kConfig,
                    "the dataset has " + std::to_string(prompts) +
                        " prompts, fewer than one update takes; lower --rollout.batch_size " +
                        std::to_string(groups) + " or raise --train.num_episodes");
}

}  // namespace troupe::app
