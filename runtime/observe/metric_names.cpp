// The table behind --log.names: what OpenRLHF 0.11, TRL 1.x and verl call each of our metrics, with
// the train/ or eval/ that they write in front. "": that trainer has no such metric.
#include "runtime/observe/metric_names.hpp"

namespace troupe::observe {
namespace {

constexpr MetricNames kNames[] = {
    {"reward/mean", "train/reward", "train/reward", "critic/score/mean"},
    {"reward/std", "", "train/reward_std", ""},
    {"reward/min", "", "", "critic/score/min"},
    {"reward/max", "", "", "critic/score/max"},
    {"policy/zero_advantage_share", "", "train/frac_reward_zero_std", ""},
    {"kl/ref", "train/kl", "train/kl", "actor/kl_loss"},
    {"kl/old", "train/ppo_kl", "", "actor/ppo_kl"},
    {"kl/rollout_train", "train/vllm_kl", "", "training/rollout_probs_diff_mean"},
    {"policy/loss", "train/policy_loss", "train/loss", "actor/pg_loss"},
    {"policy/clipfrac", "train/ppo_clip_ratio", "train/clip_ratio/region_mean",
     "actor/pg_clipfrac"},
    {"policy/clipfrac_low", "", "train/clip_ratio/low_mean", "actor/pg_clipfrac_lower"},
    {"policy/clipfrac_high", "", "train/clip_ratio/high_mean", ""},
    {"policy/entropy", "train/entropy_loss", "train/entropy", "actor/entropy"},
    {"policy/grad_norm", "train/actor_grad_norm", "train/grad_norm", "actor/grad_norm"},
    {"policy/lr", "train/actor_lr", "train/learning_rate", "actor/lr"},
    {"value/loss", "train/critic_loss", "", "critic/vf_loss"},
    {"value/clipfrac", "", "", "critic/vf_clipfrac"},
    {"value/explained_var", "", "", "critic/vf_explained_var"},
    {"value/mean", "train/values", "", "critic/values/mean"},
    {"value/grad_norm", "", "", "critic/grad_norm"},
    {"value/lr", "train/critic_lr", "", "critic/lr"},
    {"response/length_mean", "train/response_length", "train/completions/mean_length",
     "response_length/mean"},
    {"response/length_min", "", "train/completions/min_length", "response_length/min"},
    {"response/length_max", "", "train/completions/max_length", "response_length/max"},
    {"response/clip_ratio", "train/truncated_rate", "train/completions/clipped_ratio",
     "response_length/clip_ratio"},
    {"time/generate", "train/timing/generation", "", "timing_s/gen"},
    {"time/reward", "train/timing/make_experience", "", "timing_s/reward"},
    {"time/train", "train/timing/ppo_train", "", "timing_s/update_actor"},
    {"time/sync", "train/timing/broadcast", "", "timing_s/update_weights"},
    {"time/step", "train/timing/step_total", "train/step_time", "timing_s/step"},
    {"perf/tokens_per_s", "", "", "perf/throughput"},
    {"rewards/chosen", "train/chosen_reward", "train/rewards/chosen", ""},
    {"rewards/rejected", "train/reject_reward", "train/rewards/rejected", ""},
    {"rewards/margins", "", "train/rewards/margins", ""},
    {"rewards/accuracies", "train/acc", "train/rewards/accuracies", ""},
    {"logps/chosen", "", "train/logps/chosen", ""},
    {"logps/rejected", "", "train/logps/rejected", ""},
    {"eval/loss", "eval/eval_loss", "eval/loss", "val/loss"},
    {"eval/accuracy", "eval/acc_mean", "eval/rewards/accuracies", ""},
    {"eval/margins", "", "eval/rewards/margins", ""},
    {"eval/pass@1", "eval/default_pass1", "", "val-core/default/acc/mean@1"},
    {"eval/truncated_rate", "eval/default_truncated_rate", "", ""},
    {"eval/response_length", "eval/default_response_length", "", ""},
};

}  // namespace

std::span<const MetricNames> metric_names() {
  return kNames;
}

std::string metric_name(std::string_view name, std::string_view style) {
  for (const MetricNames& row : kNames) {
    if (row.ours != name) continue;
    const std::string_view theirs = style == "openrlhf" ? row.openrlhf
                                    : style == "trl"    ? row.trl
                                    : style == "verl"   ? row.verl
                                                        : std::string_view();
    if (!theirs.empty()) return std::string(theirs);
  }
  return std::string(name);
}

}  // namespace troupe::observe
