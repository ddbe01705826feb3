// The first half of an update: checks, the policy at its start, advantages, the plan.
#include "runtime/learn/trainer.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/learn/advantage.hpp"
#include "runtime/learn/kl_control.hpp"
#include "runtime/learn/trainer_impl.hpp"

#include <algorithm>

namespace troupe::learn {
namespace {

using core::ErrorCode;

core::Result<void> require(bool holds, const char* key, const char* rule) {
  if (holds) return {};
  return core::fail(ErrorCode::kConfig, std::string(key) + " must be " + rule);
}

core::Result<void> check_algo(const AlgoSettings& algo) {
  TROUPE_TRY(require(algo.temperature > 0, "rollout.temperature", "above 0 in training"));
  TROUPE_TRY(
      require(algo.eps_clip_low >= 0 && algo.eps_clip_high >= 0, "actor.eps_clip", "at least 0"));
  TROUPE_TRY(require(algo.correction_max > 0, "algo.correction_max", "above 0"));
  TROUPE_TRY(require(algo.reward_clip_low <= algo.reward_clip_high, "reward.clip_range",
                     "two values in ascending order"));
  TROUPE_TRY(require(algo.reducer_constant > 0, "algo.reducer_constant", "above 0"));
  const auto refused = refusal(algo);
  if (!refused) return {};
  return core::fail(ErrorCode::kConfig, refused->key + ": " + refused->why);
}

core::Result<void> check_texts(const TrainerSettings& settings) {
  if (settings.ptx == nullptr) return {};
  TROUPE_TRY(require(!settings.ptx->texts.empty(), "data.pretrain_dataset", "not empty"));
  TROUPE_TRY(require(settings.ptx->coef >= 0, "actor.ptx_coef", "at least 0"));
  for (const auto& text : settings.ptx->texts) {
    TROUPE_TRY(require(text.size() >= 2, "data.pretrain_dataset", "texts of two tokens and more"));
    const auto rows = static_cast<std::int64_t>(text.size()) - 1;
    TROUPE_TRY(require(rows <= settings.batch.micro_tokens_max, "train.micro_tokens_max",
                       "as large as the longest text of data.pretrain_dataset"));
  }
  return {};
}

// A pair of online DPO is learnt from in one piece.
core::Result<void> check_pairs(const std::vector<TrainGroup>& groups, std::int64_t rows_max) {
  for (const TrainGroup& group : groups) {
    const std::int64_t rows = part_rows(group, 0, group.samples.size());
    if (rows <= rows_max) continue;
    return core::fail(ErrorCode::kConfig,
                      "the best and worst sample of " + ticket_name(group.ticket) + " need " +
                          std::to_string(rows) + " rows with their prompt, a micro-batch holds " +
                          std::to_string(rows_max) + "; raise --train.micro_tokens_max");
  }
  return {};
}

}  // namespace

core::Result<void> check_settings(const TrainerSettings& settings) {
  TROUPE_TRY(check_algo(settings.algo));
  TROUPE_TRY(require(settings.batch.micro_tokens_max >= 1, "train.micro_tokens_max", "at least 1"));
  TROUPE_TRY(require(settings.batch.epochs >= 1, "train.max_epochs", "at least 1"));
  TROUPE_TRY(require(settings.batch.mini_batches >= 1, "train.batch_size",
                     "at most the samples of an update"));
  TROUPE_TRY(check_texts(settings));
  TROUPE_TRY(require(settings.ema_beta < 1, "train.ema_beta", "below 1"));
  return {};
}

core::Result<std::unique_ptr<PolicyTrainer>> PolicyTrainer::create(
    std::unique_ptr<model::ParamStore> master, TrainerSettings settings, core::TeamRunner& team) {
  TROUPE_TRY(check_settings(settings));
  TROUPE_TRY_ASSIGN(trained, TrainableModel::create(std::move(master), settings.optim,
                                                    settings.total_steps, team));
  std::unique_ptr<PolicyTrainer> trainer =
      std::make_unique<PolicyTrainerImpl>(std::move(trained), settings);
  return trainer;
}

PolicyTrainerImpl::PolicyTrainerImpl(std::unique_ptr<TrainableModel> model,
                                     TrainerSettings settings)
    : settings_(settings),
      model_(std::move(model)),
      runner_(settings_.algo, model_->team(), model_->forward()) {
  state_.kl_coef = settings_.algo.kl_coef;
  if (settings_.ptx != nullptr) {
    ptx_.emplace(settings_.ptx, settings_.batch.micro_tokens_max, model_->team(),
                 model_->forward());
  }
  if (settings_.ema_beta >= 0) average_.emplace(model_->master(), settings_.ema_beta);
}

core::Result<ValueTargets> PolicyTrainerImpl::prepare(std::vector<TrainGroup> groups) {
  model_->team().run([](core::Team) { kernels::flush_denormals(); });
  update_.reset();
  groups_ = std::move(groups);
  AlgoSettings& algo = settings_.algo;
  TROUPE_TRY_ASSIGN(
      staleness, check_experience(groups_, version(), algo.needs_reference(), algo.estimator->has_critic));
  staleness_ = staleness;
  score_ = mean_score();
  UpdateContext update{.groups = groups_, .advantages = {}, .plan = {}, .scored = {}, .keep = {}};
  update.start = version();
  const std::int64_t steps =
      settings_.batch.epochs *
      std::min(settings_.batch.mini_batches, static_cast<std::int64_t>(groups_.size()));
  const bool start_first = start_needed(algo);
  update.anchor = anchor_source(algo.objective, staleness_.on_policy(), steps, start_first);
  const bool extra = start_first && !staleness_.on_policy();
  if (update.anchor == AnchorSource::kScored || extra) TROUPE_TRY(score_start(update));
  TROUPE_TRY_ASSIGN(found, update_advantages(algo, groups_, update.scored, state_.moments));
  update.advantages = std::move(found.tokens);
  kl_of_sample_ = found.kl_of_sample;
  if (algo.objective->pairs) {
    keep_best_and_worst(groups_, update.advantages, update.scored);
  }
  if (algo.correction->masks_update) {
    update.keep = update_mask(groups_, update.scored, algo.correction_high);
  }
  TROUPE_TRY(plan(update));
  update_.emplace(std::move(update));
  return ValueTargets{std::move(found.returns)};
}

double PolicyTrainerImpl::mean_score() const {
  double sum = 0, count = 0;
  for (const std::size_t index : by_ticket(groups_)) {
    for (const TrainSample& sample : groups_[index].samples) {
      sum += sample.score;
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

// A group whose advantages are all zero has no gradient unless another term brings one.
core::Result<void> PolicyTrainerImpl::plan(UpdateContext& update) {
  const AlgoSettings& algo = settings_.algo;
  const bool other_terms = (algo.kl_coef != 0 && algo.kl_in_loss) || algo.entropy_coef != 0 ||
                           settings_.optim.aux_loss_coef != 0;
  const bool pairs = algo.objective->pairs;
  std::vector<bool> learns;
  for (const auto& group : update.advantages) {
    bool any = false;
    for (const auto& sample : group) {
      any = any || std::any_of(sample.begin(), sample.end(), [](double a) { return a != 0; });
    }
    if (pairs && any) ++update.pairs;
    learns.push_back(any || other_terms);
  }
  TROUPE_TRY_ASSIGN(plan, plan_update(groups_, settings_.batch, learns));
  if (pairs) TROUPE_TRY(check_pairs(groups_, settings_.batch.micro_tokens_max));
  update.plan = std::move(plan);
  return {};
}

core::Result<void> PolicyTrainerImpl::score_start(UpdateContext& update) {
  TROUPE_TRY_ASSIGN(all, plan_update(groups_, settings_.batch));
  const auto weights = model_->packed();
  update.scored.resize(groups_.size());
  for (const MiniBatch& mini : all.mini_batches) {
    for (const MicroBatch& micro : mini.micro_batches) {
      TROUPE_TRY_ASSIGN(logprobs, runner_.score(*weights, groups_, micro));
      scatter_scored(groups_, micro, logprobs, update.scored);
    }
  }
  return {};
}

}  // namespace troupe::learn
