// Sampling with old weights and learning from them.
#include "apps/bench/lag_run.hpp"

#include "apps/bench/lag_task.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/score.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPrompts = 16;  // of an update
constexpr std::int32_t kSamples = 8;  // of a prompt
constexpr std::int64_t kSteps = 4;    // optimiser steps of an update
constexpr std::size_t kHeldOut = 64;  // prompts of an evaluation
constexpr std::int32_t kHeldOutSamples = 4;
constexpr std::int64_t kEvaluations = 10;
constexpr double kCriticLrFactor = 9;  // as the defaults of the two rates
constexpr std::uint64_t kSampling = 0x6c61672d73, kPromptStream = 0x6c61672d70,
                        kEvaluation = 0x6c61672d65;

bool needs_critic(const LagJob& job) {
  return job.arm == "vtrace";
}
bool needs_reference(const LagJob& job) {
  return job.arm == "online_dpo";
}

learn::TrainerSettings settings_of(const LagJob& job) {
  using learn::ObjectiveKind;
  static const std::map<std::string, ObjectiveKind> kObjectives = {
      {"ppo", ObjectiveKind::kPpo},
      {"decoupled", ObjectiveKind::kDecoupled},
      {"a3po", ObjectiveKind::kA3po},
      {"vtrace", ObjectiveKind::kDecoupled},
      {"online_dpo", ObjectiveKind::kOnlineDpo}};
  learn::TrainerSettings settings;
  settings.algo.objective = kObjectives.at(job.arm);
  if (needs_critic(job)) settings.algo.advantage = learn::AdvantageKind::kVtrace;
  settings.optim.lr = job.lr;
  settings.optim.warmup_ratio = 0;
  settings.optim.lr_min_ratio = 1;  // a constant rate: lag acts alike on all updates
  settings.batch.mini_batches = kSteps;
  settings.total_steps = job.updates * kSteps;
  return settings;
}

class Run {
 public:
  explicit Run(const LagJob& job)
      : job_(job), prompts_(core::derive_seed(job.seed, kPromptStream)) {}

  core::Result<LagResult> run() {
    const Clock::time_point start = Clock::now();
    TROUPE_TRY(build());
    LagResult result;
    for (std::int64_t update = 0; update < job_.updates; ++update) {
      TROUPE_TRY(one_update(update, result));
      if ((update + 1) % std::max<std::int64_t>(1, job_.updates / kEvaluations) == 0) {
        TROUPE_TRY_ASSIGN(score, evaluate());
        scores_.push_back(score);
      }
    }
    const auto updates = static_cast<double>(job_.updates);
    for (double* mean : {&result.ess, &result.rho_max, &result.masked_share, &result.kl_rollout})
      *mean /= updates;
    TROUPE_TRY_ASSIGN(last, evaluate());
    result.final_score = last;
    for (const double score : scores_)
      result.area += score / static_cast<double>(scores_.size());
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return result;
  }

 private:
  core::Result<void> build() {
    const std::uint64_t weights = core::derive_seed(job_.seed, 1);
    TROUPE_TRY_ASSIGN(trainers, learn::trainers());
    TROUPE_TRY_ASSIGN(trainer,
                      trainers->policy(lag_model(task_, model::HeadKind::kLanguage, weights),
                                       settings_of(job_), team_));
    trainer_ = std::move(trainer);
    first_ = trainer_->packed();
    if (needs_critic(job_)) {
      learn::CriticSettings settings;
      settings.optim = settings_of(job_).optim;
      settings.optim.lr = job_.lr * kCriticLrFactor;
      settings.batch = settings_of(job_).batch;
      settings.total_steps = settings_of(job_).total_steps;
      TROUPE_TRY_ASSIGN(critic, trainers->critic(lag_model(task_, model::HeadKind::kScore, weights),
                                                 settings, team_));
      critic_ = std::move(critic);
    }
    engine::EngineLimits limits;
    limits.kv_blocks = 512;
    limits.step_tokens_max = 1024;
    TROUPE_TRY_ASSIGN(engine, engine::Engine::create(first_, limits, {}, nullptr, team_));
    engine_ = std::move(engine);
    return {};
  }

  // `count` prompts with `samples` answers each, drawn by `weights`.
  core::Result<std::vector<learn::TrainGroup>> sample(
      std::shared_ptr<const model::PackedWeights> weights,
      core::Rng& prompts,
      std::size_t count,
      std::int32_t samples,
      std::uint64_t seed) {
    TROUPE_TRY(engine_->set_weights(std::move(weights), engine::KvAction::kRecompute));
    std::vector<learn::TrainGroup> groups(count);
    for (std::size_t g = 0; g < count; ++g) {
      groups[g].ticket.slot = static_cast<std::uint32_t>(g);
      groups[g].prompt = task_.prompt(prompts);
      groups[g].samples.resize(static_cast<std::size_t>(samples));
      engine::GroupRequest request;
      request.id.value = ++submitted_;
      request.prompt = groups[g].prompt;
      request.samples = samples;
      request.seed = core::derive_seed(seed, g);
      request.sampling.max_new_tokens = task_.answer_tokens;
      request.sampling.ignore_eos = true;
      TROUPE_TRY(engine_->submit(std::move(request)));
    }
    const std::uint64_t before = submitted_ - count + 1;
    while (!engine_->idle()) {
      TROUPE_TRY_ASSIGN(finished, engine_->step());
      for (engine::Sample& done : finished) {
        learn::TrainGroup& group = groups[done.group.value - before];
        learn::TrainSample& to = group.samples[static_cast<std::size_t>(done.index)];
        to.tokens = std::move(done.tokens);
        to.behaviour = std::move(done.logprobs);
        to.versions = std::move(done.versions);
        to.score = task_.score(group.prompt, to.tokens);
      }
    }
    return groups;
  }

  // The weights of `lag` updates ago; in the first updates those of the start.
  std::shared_ptr<const model::PackedWeights> old_weights() {
    past_.push_back(trainer_->packed());
    if (static_cast<std::int64_t>(past_.size()) > job_.lag + 1) past_.pop_front();
    return past_.front();
  }

  core::Result<void> one_update(std::int64_t update, LagResult& result) {
    const auto number = static_cast<std::uint64_t>(update);
    TROUPE_TRY_ASSIGN(groups, sample(old_weights(), prompts_, kPrompts, kSamples,
                                     core::derive_seed(job_.seed, kSampling, number)));
    for (learn::TrainGroup& group : groups)
      group.ticket.update = number;
    if (needs_reference(job_)) TROUPE_TRY(add_reference(groups));
    learn::TokenValues values;
    if (critic_) {
      TROUPE_TRY_ASSIGN(found, critic_->values(groups));
      values = std::move(found);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        for (std::size_t i = 0; i < groups[g].samples.size(); ++i)
          groups[g].samples[i].values = values[g][i];
      }
    }
    TROUPE_TRY_ASSIGN(targets, trainer_->prepare(groups));
    TROUPE_TRY_ASSIGN(report, trainer_->learn());
    if (critic_) TROUPE_TRY(critic_->update(groups, values, targets.returns));
    const std::map<std::string, double> metrics(report.metrics.begin(), report.metrics.end());
    const auto add = [&](double& sum, const char* name) {
      const auto found = metrics.find(name);
      if (found != metrics.end()) sum += found->second;
    };
    add(result.ess, "async/ess");
    add(result.rho_max, "async/rho_max");
    add(result.masked_share, "async/masked_share");
    add(result.kl_rollout, "kl/rollout_train");
    return {};
  }

  core::Result<void> add_reference(std::vector<learn::TrainGroup>& groups) {
    std::vector<model::SampleGroup> items;
    for (const learn::TrainGroup& group : groups) {
      model::SampleGroup item;
      item.prompt = group.prompt;
      for (const learn::TrainSample& sample : group.samples)
        item.responses.emplace_back(sample.tokens);
      items.push_back(std::move(item));
    }
    TROUPE_TRY(model::build_group_plan(items, first_->spec(), team_.size(), plan_));
    std::vector<float> logprobs(static_cast<std::size_t>(plan_.targets.size()));
    model::score_logprobs(team_, *first_, plan_.plan, plan_.targets, 1.0f, scratch_, logprobs);
    auto next = logprobs.begin();
    for (learn::TrainGroup& group : groups) {
      for (learn::TrainSample& sample : group.samples) {
        const auto count = static_cast<std::ptrdiff_t>(sample.tokens.size());
        sample.reference.assign(next, next + count);
        next += count;
      }
    }
    return {};
  }

  // Always the same prompts of the seed, and the same random numbers.
  core::Result<double> evaluate() {
    const std::uint64_t seed = core::derive_seed(job_.seed, kEvaluation);
    core::Rng prompts(seed);
    TROUPE_TRY_ASSIGN(groups, sample(trainer_->packed(), prompts, kHeldOut, kHeldOutSamples, seed));
    double sum = 0;
    for (const learn::TrainGroup& group : groups) {
      for (const learn::TrainSample& sample : group.samples)
        sum += sample.score;
    }
    return sum / static_cast<double>(kHeldOut * static_cast<std::size_t>(kHeldOutSamples));
  }

  const LagJob& job_;
  const LagTask task_;
  core::SerialTeam team_;
  core::Rng prompts_;
  std::unique_ptr<learn::PolicyTrainer> trainer_;
  std::unique_ptr<learn::CriticTrainer> critic_;
  std::unique_ptr<engine::Engine> engine_;
  std::shared_ptr<const model::PackedWeights> first_;
  std::deque<std::shared_ptr<const model::PackedWeights>> past_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
  std::vector<double> scores_;
  std::uint64_t submitted_ = 0;
};

}  // namespace

std::vector<std::string_view> lag_arms() {
  return {"ppo", "decoupled", "a3po", "vtrace", "online_dpo"};
}

core::Result<LagResult> run_lag(const LagJob& job) {
  kernels::flush_denormals();
  return Run(job).run();
}

}  // namespace troupe::app
