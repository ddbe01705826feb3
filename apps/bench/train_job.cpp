#include "apps/bench/train_job.hpp"

#include "apps/bench/workload.hpp"
#include "runtime/learn/micro_batch.hpp"
#include "runtime/learn/update_context.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"

#include <utility>

namespace troupe::app {
namespace {

constexpr std::uint64_t kSeed = 20240607;

}  // namespace

bool is_supervised(const std::string& objective) {
  return objective == "sft" || objective == "dpo" || objective == "rm";
}

void choose_sizes(TrainJob& job) {
  const bool pairs = job.objective == "dpo" || job.objective == "rm";
  const bool alone = job.objective == "ppo" || is_supervised(job.objective);
  const auto choose = [](std::int64_t& size, std::int64_t value) {
    if (size == 0) size = value;
  };
  choose(job.prompts, job.objective == "ppo" ? 32 : job.objective == "sft" ? 16 : pairs ? 8 : 4);
  choose(job.samples, pairs ? 2 : alone ? 1 : 8);
  choose(job.prompt_tokens, job.objective == "sft" ? 0 : 32);
  choose(job.new_tokens, job.objective == "sft" ? 256 : pairs ? 96 : 64);
}

core::Result<learn::TrainerSettings> trainer_settings(const TrainJob& job) {
  static constexpr std::pair<std::string_view, std::string_view> kEstimators[] = {
      {"grpo", "group_norm"},
      {"dr_grpo", "dr_grpo"},
      {"rloo", "rloo"},
      {"reinforce_baseline", "reinforce_baseline"},
      {"ppo", "gae"}};
  learn::TrainerSettings settings;
  settings.batch.micro_tokens_max = job.micro_tokens_max;
  settings.total_steps = 100;
  for (const auto& [name, estimator] : kEstimators) {
    if (job.objective != name) continue;
    settings.algo.estimator = estimator;
    return settings;
  }
  return core::fail(core::ErrorCode::kConfig,
                    "troupe bench train: --objective is '" + job.objective +
                        "'; use grpo, dr_grpo, rloo, reinforce_baseline, ppo, sft, dpo or rm");
}

core::Result<void> check_context(const TrainJob& job, const model::ModelSpec& spec) {
  if (job.prompt_tokens + job.new_tokens <= spec.context) return {};
  return core::fail(core::ErrorCode::kConfig,
                    "troupe bench train: --prompt-tokens and --new-tokens add up to " +
                        std::to_string(job.prompt_tokens + job.new_tokens) +
                        ", the model has a context of " + std::to_string(spec.context));
}

double weights_by_rows(const model::ModelSpec& spec, std::int64_t rows, std::int64_t logit_rows) {
  const std::int64_t outputs = spec.head == model::HeadKind::kScore ? 1 : spec.vocab;
  return static_cast<double>(rows) * static_cast<double>(spec.active_weights()) +
         static_cast<double>(logit_rows) * static_cast<double>(spec.hidden * outputs);
}

std::vector<experience::Group> random_groups(const TrainJob& job, const model::ModelSpec& spec) {
  core::Rng rng(kSeed);
  std::vector<experience::Group> groups;
  for (std::int64_t slot = 0; slot < job.prompts; ++slot) {
    experience::Group group;
    group.ticket.slot = static_cast<std::uint32_t>(slot);
    group.prompt = random_tokens(rng, job.prompt_tokens, spec.vocab);
    for (std::int64_t i = 0; i < job.samples; ++i) {
      experience::Trajectory sample;
      sample.tokens = random_tokens(rng, job.new_tokens, spec.vocab);
      sample.score = i % 2 == 0 ? 1.0 : 0.0;
      group.samples.push_back(std::move(sample));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

core::Result<void> record_behaviour(std::vector<experience::Group>& groups,
                                    const model::PackedWeights& weights,
                                    const learn::TrainerSettings& settings,
                                    core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(update, learn::plan_update(groups, settings.batch));
  const auto temperature = static_cast<float>(settings.algo.temperature);
  model::GroupPlan plan;
  std::vector<std::vector<std::vector<float>>> scored(groups.size());
  for (const learn::MiniBatch& mini : update.mini_batches) {
    for (const learn::MicroBatch& micro : mini.micro_batches) {
      const auto samples = learn::sample_groups(groups, micro);
      TROUPE_TRY(model::build_group_plan(samples, weights.spec(), team.size(), plan));
      learn::scatter_scored(
          groups, micro, model::score_logprobs(team, weights, plan.plan, plan.targets, temperature),
          scored);
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].samples.size(); ++i) {
      experience::Trajectory& sample = groups[g].samples[i];
      sample.behaviour = std::move(scored[g][i]);
      sample.versions = experience::VersionRuns::all(weights.version(), sample.tokens.size());
    }
  }
  return {};
}

core::Result<double> product_flops(const std::vector<experience::Group>& groups,
                                   const model::ModelSpec& spec,
                                   const learn::TrainerSettings& settings) {
  TROUPE_TRY_ASSIGN(update, learn::plan_update(groups, settings.batch));
  model::GroupPlan plan;
  double products = 0;
  for (const learn::MiniBatch& mini : update.mini_batches) {
    for (const learn::MicroBatch& micro : mini.micro_batches) {
      TROUPE_TRY(model::build_group_plan(learn::sample_groups(groups, micro), spec, 1, plan));
      products += weights_by_rows(spec, plan.plan.rows(),
                                  static_cast<std::int64_t>(plan.plan.logit_rows.size()));
    }
  }
  return 6.0 * products;
}

}  // namespace troupe::app
