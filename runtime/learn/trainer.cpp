// One update: advantages, plan, anchor, then an optimiser step for each mini-batch of each pass.
#include "runtime/learn/trainer.hpp"

#include "kernels/ops.hpp"
#include "runtime/learn/advantage.hpp"
#include "runtime/learn/experience_check.hpp"
#include "runtime/learn/trainer_impl.hpp"

#include <atomic>
#include <cmath>
#include <cstring>

namespace troupe::learn {
namespace {

using core::ErrorCode;

std::string name_of_groups(const UpdateContext& update, const MiniBatch& mini) {
  const auto& first = mini.micro_batches.front().parts.front();
  const auto& last = mini.micro_batches.back().parts.back();
  const std::string begin = ticket_name(update.groups[first.group].ticket);
  const std::string end = ticket_name(update.groups[last.group].ticket);
  return begin == end ? begin : begin + " to " + end;
}

}  // namespace

core::Result<void> check_settings(const TrainerSettings& settings) {
  const AlgoSettings& algo = settings.algo;
  const OptimSettings& optim = settings.optim;
  const auto require = [](bool holds, const char* key, const char* rule) -> core::Result<void> {
    if (holds) return {};
    return core::fail(ErrorCode::kConfig, std::string(key) + " must be " + rule);
  };
  // Betas are used as f32: one that rounds to 1 would never forget, and divide by zero.
  const auto is_beta = [](double beta) { return beta >= 0 && static_cast<float>(beta) < 1.0f; };
  TROUPE_TRY(require(std::isfinite(optim.lr) && optim.lr >= 0, "actor.adam.lr", "at least 0"));
  TROUPE_TRY(require(is_beta(optim.beta1) && is_beta(optim.beta2), "actor.adam.betas",
                     "at least 0 and below 1 as 32-bit numbers"));
  TROUPE_TRY(require(static_cast<float>(optim.eps) > 0, "actor.adam.eps", "above 0"));
  TROUPE_TRY(require(optim.grad_norm_max >= 0, "actor.max_norm", "at least 0"));
  TROUPE_TRY(require(algo.temperature > 0, "rollout.temperature", "above 0 in training"));
  TROUPE_TRY(
      require(algo.eps_clip_low >= 0 && algo.eps_clip_high >= 0, "actor.eps_clip", "at least 0"));
  TROUPE_TRY(require(algo.correction_max > 0, "algo.correction_max", "above 0"));
  TROUPE_TRY(require(algo.reward_clip_low <= algo.reward_clip_high, "reward.clip_range",
                     "two values in ascending order"));
  TROUPE_TRY(require(settings.batch.micro_tokens_max >= 1, "train.micro_tokens_max", "at least 1"));
  TROUPE_TRY(require(settings.batch.epochs >= 1, "train.max_epochs", "at least 1"));
  TROUPE_TRY(require(settings.batch.mini_batches >= 1, "train.batch_size",
                     "at most the samples of an update"));
  return {};
}

core::Result<std::unique_ptr<PolicyTrainer>> PolicyTrainer::create(
    std::unique_ptr<model::ParamStore> master, TrainerSettings settings, core::TeamRunner& team) {
  TROUPE_TRY(check_settings(settings));
  std::unique_ptr<PolicyTrainer> trainer =
      std::make_unique<PolicyTrainerImpl>(std::move(master), settings, team);
  return trainer;
}

PolicyTrainerImpl::PolicyTrainerImpl(std::unique_ptr<model::ParamStore> master,
                                     TrainerSettings settings,
                                     core::TeamRunner& team)
    : settings_(settings),
      team_(team),
      master_(std::move(master)),
      grads_(master_->spec()),
      optimiser_(master_->spec(), settings.optim),
      schedule_(settings.optim, settings.total_steps),
      runner_(settings_.algo, team, *master_, grads_) {}

std::shared_ptr<const model::PackedWeights> PolicyTrainerImpl::packed() {
  if (packed_ && packed_->version() == version_) return packed_;
  // Panels that nobody else reads are filled again; else the readers keep theirs, and the panels of
  // the version before come back when they are free: fresh memory costs a fault for every page.
  if (!packed_ || packed_.use_count() > 1) {
    std::swap(packed_, spare_);
    if (!packed_ || packed_.use_count() > 1) {
      packed_ = std::make_shared<model::PackedWeights>(master_->spec());
    }
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // after the last other holder let go
  team_.run([&](core::Team member) { packed_->fill(member, *master_, version_); });
  return packed_;
}

void PolicyTrainerImpl::zero_gradients() {
  team_.run([&](core::Team member) {
    const auto [begin, end] = member.share(grads_.size(), 64);
    std::memset(grads_.data() + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

core::Result<UpdateReport> PolicyTrainerImpl::update(const std::vector<TrainGroup>& groups) {
  team_.run([](core::Team) { kernels::flush_denormals(); });
  TROUPE_TRY_ASSIGN(staleness, check_experience(groups, version_, settings_.algo.kl_coef != 0));
  TROUPE_TRY_ASSIGN(update, prepare(groups, staleness));
  if (update.anchor == AnchorSource::kScored) TROUPE_TRY(score_anchors(update));
  Totals totals;
  for (std::int64_t epoch = 0; epoch < settings_.batch.epochs; ++epoch) {
    for (const MiniBatch& mini : update.plan.mini_batches) {
      TROUPE_TRY(optimiser_step(update, mini, totals));
    }
  }
  return report(update, totals, staleness);
}

core::Result<UpdateContext> PolicyTrainerImpl::prepare(const std::vector<TrainGroup>& groups,
                                                       const Staleness& staleness) {
  UpdateContext update{.groups = groups, .advantages = {}, .plan = {}, .scored = {}};
  TROUPE_TRY_ASSIGN(advantages, update_advantages(settings_.algo, groups));
  // A group whose advantages are all zero has no gradient unless another term brings one.
  const bool other_terms = settings_.algo.kl_coef != 0 || settings_.algo.entropy_coef != 0;
  std::vector<bool> learns;
  for (const auto& group : advantages) {
    bool any = other_terms;
    for (const double advantage : group)
      any = any || advantage != 0;
    learns.push_back(any);
  }
  TROUPE_TRY_ASSIGN(plan, plan_update(groups, settings_.batch, learns));
  update.advantages = std::move(advantages);
  update.plan = std::move(plan);
  const auto steps =
      static_cast<std::int64_t>(update.plan.mini_batches.size()) * settings_.batch.epochs;
  update.anchor = anchor_source(staleness.on_policy(), steps);
  return update;
}

core::Result<void> PolicyTrainerImpl::score_anchors(UpdateContext& update) {
  const auto weights = packed();
  update.scored.resize(update.groups.size());
  for (const MiniBatch& mini : update.plan.mini_batches) {
    for (const MicroBatch& micro : mini.micro_batches) {
      TROUPE_TRY_ASSIGN(logprobs, runner_.score(*weights, update.groups, micro));
      scatter_scored(update.groups, micro, logprobs, update.scored);
    }
  }
  return {};
}

core::Result<void> PolicyTrainerImpl::optimiser_step(const UpdateContext& update,
                                                     const MiniBatch& mini,
                                                     Totals& totals) {
  ++totals.steps;
  totals.lr = schedule_.rate(static_cast<std::int64_t>(version_));
  zero_gradients();
  ObjectiveStats stats;
  {
    const auto weights = packed();
    for (const MicroBatch& micro : mini.micro_batches) {
      TROUPE_TRY_ASSIGN(part, runner_.run(*weights, update, micro));
      ++totals.micro_batches;
      if (!std::isfinite(part.loss)) return skip_step(update, mini, "the loss", totals);
      stats.add(part);
    }
  }
  const double norm = global_norm(team_, grads_.data(), grads_.size());
  if (!std::isfinite(norm)) {
    return skip_step(update, mini, "the gradient of " + first_nonfinite(grads_), totals);
  }
  optimiser_.step(team_, *master_, grads_, totals.lr,
                  clip_scale(norm, settings_.optim.grad_norm_max));
  ++version_;
  skipped_in_row_ = 0;
  totals.grad_norm_sum += norm;
  totals.stats.add(stats);
  return {};
}

core::Result<void> PolicyTrainerImpl::skip_step(const UpdateContext& update,
                                                const MiniBatch& mini,
                                                const std::string& what,
                                                Totals& totals) {
  const core::Version step = version_++;
  ++totals.skipped;
  ++skipped_in_row_;
  if (skipped_in_row_ <= settings_.optim.nonfinite_steps_max) return {};
  return core::fail(ErrorCode::kNumeric,
                    "optimiser step " + std::to_string(step) + " (" + name_of_groups(update, mini) +
                        "): " + what + " is not finite; " + std::to_string(skipped_in_row_) +
                        " such step(s) in a row, --train.nonfinite_steps_max is " +
                        std::to_string(settings_.optim.nonfinite_steps_max) +
                        "; lower --actor.adam.lr");
}

UpdateReport PolicyTrainerImpl::report(const UpdateContext& update,
                                       const Totals& totals,
                                       const Staleness& staleness) const {
  UpdateReport report;
  report.version = version_;
  report.optimiser_steps = totals.steps;
  report.skipped_steps = totals.skipped;
  report.micro_batches = totals.micro_batches;
  report.policy_tokens = update.plan.tokens;
  report.rows = update.plan.rows;
  const std::int64_t applied = totals.steps - totals.skipped;
  auto& rows = report.metrics;
  if (applied > 0) {
    rows.emplace_back("policy/loss", totals.stats.loss / static_cast<double>(applied));
    rows.emplace_back("policy/grad_norm", totals.grad_norm_sum / static_cast<double>(applied));
  }
  rows.emplace_back("policy/lr", totals.lr);
  rows.emplace_back("policy/skipped_steps", static_cast<double>(totals.skipped));
  if (applied > 0) {
    for (auto& row : totals.stats.metrics())
      rows.push_back(std::move(row));
  }
  rows.emplace_back("async/staleness_mean", staleness.mean);
  rows.emplace_back("async/staleness_max", static_cast<double>(staleness.max));
  double flat = 0;
  for (const auto& group : update.advantages) {
    bool zero = true;
    for (const double advantage : group)
      zero = zero && advantage == 0;
    flat += zero ? 1 : 0;
  }
  rows.emplace_back("policy/zero_advantage_share",
                    flat / static_cast<double>(update.advantages.size()));
  return report;
}

}  // namespace troupe::learn
