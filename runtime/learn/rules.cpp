// Checks combinations of learning settings: which estimator, objective, correction, reducer and KL
// settings may be used together.
#include "runtime/learn/settings.hpp"

#include <string>

namespace troupe::learn {

std::optional<core::Refusal> refusal(const AlgoSettings& algo) {
  const Objective& objective = *algo.objective;
  const Estimator& estimator = *algo.advantage.estimator;
  const Correction& correction = *algo.correction.type;
  const auto refuse = [](const char* key, const std::string& why, std::string advice = {}) {
    return core::Refusal{key, why, std::move(advice)};
  };
  const std::string by(estimator.name), how(objective.name), type(correction.name);
  const bool group = estimator.compares_samples();
  if (group && algo.samples_per_prompt == 1) {
    return refuse(
        "rollout.n_samples_per_prompt",
        "algo.advantage.estimator " + by + " compares the samples of a prompt: give at least 2");
  }
  if (group && algo.advantage.gamma != 1) {
    return refuse("algo.advantage.gamma", by + " has one reward a sample: give 1");
  }
  if (algo.kl.init_coef != 0 && algo.kl.use_loss && !algo.kl.estimator->in_loss) {
    return refuse("algo.kl.estimator",
                  std::string(algo.kl.estimator->name) +
                      " has no expected gradient in the loss: give k2 or k3, or "
                      "--algo.kl.use_loss false");
  }
  if (algo.kl.target > 0 && algo.kl.init_coef == 0) {
    return refuse("algo.kl.target", "steers algo.kl.init_coef, which is 0");
  }
  if (objective.needs_group && objective.reducer.empty() && !group) {
    return refuse("algo.advantage.estimator",
                  by + " compares no samples, which " + how + " does: give rloo or dr_grpo");
  }
  const std::string reducer(objective.reducer);
  if (!reducer.empty() && (!group || algo.reducer->name != reducer)) {
    return refuse("algo.objective", how +
                                        " has one advantage a sample and a mean over samples: give "
                                        "--algo.reducer " +
                                        reducer + " and an estimator that compares samples");
  }
  if (algo.kl.per_sample && algo.kl.use_loss) {
    return refuse("algo.kl.per_sample", "is of the reward: give --algo.kl.use_loss false");
  }
  if (objective.sample_ratio && algo.kl_in_reward() && !algo.kl.per_sample) {
    return refuse("algo.kl.use_loss",
                  how + " has one advantage a sample: give --algo.kl.per_sample true too");
  }
  if (algo.needs_teacher() && (objective.sample_ratio || objective.pairs)) {
    return refuse("algo.objective", "a teacher gives an advantage to each token, and " + how +
                                        " reads one a sample: give ppo, decoupled or reinforce");
  }
  if (algo.own_advantage && objective.pairs) {
    return refuse("algo.advantage_file", "gives advantages, which " + how +
                                             " does not read: give another --algo.objective");
  }
  if (estimator.divides_by_mean && algo.shaping.normalise_running) {
    return refuse("reward.normalize",
                  "running makes scores below 0, and " + by + " divides by their mean: give none");
  }
  if (correction.weigh != nullptr && objective.pairs) {
    return refuse("algo.correction.type", "has nothing to weigh in " + how);
  }
  if (objective.weighs_old_tokens() && correction.carries_rho) {
    return refuse(
        "algo.correction.type", how + " weighs tokens of older policies itself",
        type + " would do it twice: give --algo.objective ppo, or one of geo_rs, m2po, opsm");
  }
  if (algo.dual_clip != 0 && algo.dual_clip <= 1) {
    return refuse("actor.dual_clip", "must be above 1, or 0 for none");
  }
  if (correction.has_range && algo.correction.low >= algo.correction.high) {
    return refuse("algo.correction.low", "must be below algo.correction.high");
  }
  return std::nullopt;
}

core::Result<void> require(bool holds, const std::string& key, const char* rule) {
  if (holds) return {};
  return core::fail(core::ErrorCode::kConfig, key + " must be " + rule);
}

}  // namespace troupe::learn
