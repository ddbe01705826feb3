#include "runtime/learn/trainer.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/learn/batch_dump.hpp"
#include "runtime/learn/kl_control.hpp"
#include "runtime/learn/prepare_update.hpp"
#include "runtime/learn/rl_state.hpp"
#include "runtime/learn/step_failure.hpp"
#include "runtime/learn/tensors.hpp"
#include "runtime/learn/trainable_model.hpp"
#include "runtime/learn/update_report.hpp"
#include "runtime/learn/weight_average.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <string>

namespace troupe::learn {
namespace {

// Decay of the moving mean of the updates' scores (RlState::score_trend), per update.
constexpr double kScoreTrendKeep = 0.9;

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

ObjectiveStats not_finite() {
  ObjectiveStats stats;
  stats.loss = std::numeric_limits<double>::quiet_NaN();
  return stats;
}

// Runs single micro-batches through the model, with gradients or for metrics alone. Turns
// LibTorch's exceptions into errors. Keeps activations and scratch from batch to batch (bound:
// micro_tokens_max rows).
class MicroBatchRunner {
 public:
  // All outlive the runner.
  MicroBatchRunner(const AlgoSettings& algo, core::TeamRunner& team, model::TrainForward& forward)
      : algo_(algo), team_(team), forward_(forward) {}

  // Forward pass, loss and, when the micro-batch learns and the loss is finite, backward pass into
  // the gradients. If the loss or a log-prob is not finite, neither is the returned loss.
  core::Result<ObjectiveStats> run(const model::PackedWeights& weights,
                                   const UpdateContext& update,
                                   const MicroBatch& micro) {
    try {
      TROUPE_TRY(plan_micro_batch(update.groups, micro, weights.spec(), team_, plan_));
      const TokenBatch batch = token_batch(algo_, update, micro, weights.version());
      return micro.learns ? learn(weights, batch) : look(weights, batch);
    } catch (const std::exception& error) {
      return step_failure(error, "in a training step");
    }
  }

  // Log-probs of the micro-batch's tokens under `weights`, without gradients.
  core::Result<std::vector<float>> score(const model::PackedWeights& weights,
                                         const std::vector<experience::Group>& groups,
                                         const MicroBatch& micro) {
    TROUPE_TRY(plan_micro_batch(groups, micro, weights.spec(), team_, plan_));
    std::vector<float> logprobs(static_cast<std::size_t>(micro.tokens));
    model::score_logprobs(team_, weights, plan_.plan, plan_.targets,
                          static_cast<float>(algo_.temperature), scratch_, logprobs);
    return logprobs;
  }

 private:
  ObjectiveStats learn(const model::PackedWeights& weights, const TokenBatch& batch) {
    const c10::AutoGradMode with_grad(true);
    const auto temperature = static_cast<float>(algo_.temperature);
    const auto out = forward_.logprobs(weights, plan_.plan, plan_.targets, temperature, true);
    const auto logprobs = values_of(out.logprobs);
    const auto entropies = values_of(out.entropies);
    const at::Tensor loss = policy_loss(algo_, batch, out.logprobs, out.entropies);
    const double value = loss.item<double>();
    if (!std::isfinite(value) || !all_finite(logprobs)) return not_finite();
    loss.backward();
    ObjectiveStats stats = observe(algo_, batch, logprobs, entropies);
    stats.loss = value;
    return stats;
  }

  // For micro-batches without advantages, KL and entropy terms: loss and gradient are zero, so this
  // computes only the statistics, at a third of the cost.
  ObjectiveStats look(const model::PackedWeights& weights, const TokenBatch& batch) {
    std::vector<float> l(batch.size()), h(batch.size());
    model::score_logprobs(team_, weights, plan_.plan, plan_.targets,
                          static_cast<float>(algo_.temperature), scratch_, l, h);
    const std::vector<double> logprobs(l.begin(), l.end()), entropies(h.begin(), h.end());
    if (!all_finite(logprobs)) return not_finite();
    return observe(algo_, batch, logprobs, entropies);
  }

  const AlgoSettings& algo_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

std::string name_of_groups(const UpdateContext& update, const MiniBatch& mini) {
  const auto& first = mini.micro_batches.front().parts.front();
  const auto& last = mini.micro_batches.back().parts.back();
  const std::string begin = experience::name_of(update.groups[first.group].ticket);
  const std::string end = experience::name_of(update.groups[last.group].ticket);
  return begin == end ? begin : begin + " to " + end;
}

class PolicyTrainerImpl final : public PolicyTrainer {
 public:
  PolicyTrainerImpl(std::unique_ptr<TrainableModel> model, TrainerSettings settings)
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

  core::Result<ValueTargets> prepare(std::vector<experience::Group> groups) override {
    model_->team().run([](core::Team) { kernels::flush_denormals(); });
    update_.reset();
    const ScoreStart score_start = [this](const auto& all, const UpdatePlan& plan) {
      return score(all, plan);
    };
    TROUPE_TRY_ASSIGN(update, prepare_update(settings_, version(), std::move(groups), score_start,
                                             state_.moments));
    update_.emplace(std::move(update));
    return ValueTargets{std::move(update_->returns)};
  }

  core::Result<UpdateReport> learn() override {
    TROUPE_CHECK(update_.has_value(), "learn() comes after prepare()");
    UpdateTotals totals;
    if (state_.updates < settings_.freezing_steps) {
      totals.frozen = true;
      model_->pass(static_cast<core::Version>(settings_.batch.epochs) *
                   update_->plan.mini_batches.size());
    } else {
      bool stop = false;
      for (std::int64_t epoch = 0; epoch < settings_.batch.epochs; ++epoch) {
        for (const MiniBatch& mini : update_->plan.mini_batches) {
          if (stop) {
            // Counted as a step without training, so the schedule depends only on updates.
            model_->pass();
            ++totals.left_out;
            continue;
          }
          TROUPE_TRY_ASSIGN(moved, optimiser_step(mini, totals));
          stop = settings_.algo.kl_stop > 0 && moved > settings_.algo.kl_stop;
        }
      }
    }
    UpdateReport done = update_report(settings_, state_, *update_, totals, version());
    const double score = update_->score;
    state_.score_trend = state_.updates == 0
                             ? score
                             : kScoreTrendKeep * state_.score_trend + (1 - kScoreTrendKeep) * score;
    ++state_.updates;
    if (settings_.algo.kl_coef != 0) {
      state_.kl_coef =
          steered_kl_coef(state_.kl_coef, update_->kl_of_sample, settings_.algo.kl_target,
                          update_->plan.samples, settings_.algo.kl_horizon);
      settings_.algo.kl_coef = state_.kl_coef;
    }
    update_.reset();
    return done;
  }

  std::shared_ptr<const model::PackedWeights> packed() override { return model_->packed(); }
  const model::ParamStore& master() const override { return model_->master(); }
  const model::ParamStore* average() const override {
    return average_ ? &average_->weights() : nullptr;
  }
  core::Version version() const override { return model_->version(); }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::filesystem::path& tokenizer_from) const override {
    if (average_) {
      TROUPE_TRY(model::save_model(average_->weights(), folder.parent_path() / "ema",
                                   model::StorageDtype::kF32, tokenizer_from));
    }
    TROUPE_TRY(
        model::save_model(model_->master(), folder, model::StorageDtype::kF32, tokenizer_from));
    if (!model_->has_adapter()) return {};
    return model_->save_adapter(folder.parent_path() / "adapter", tokenizer_from.string());
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    TROUPE_TRY(model_->save_state(folder));
    if (average_) TROUPE_TRY(average_->save(folder));
    return state_.save(folder);
  }

  core::Result<void> load_state(const std::filesystem::path& folder) override {
    TROUPE_TRY_ASSIGN(state, RlState::load(folder));
    if (average_) TROUPE_TRY(average_->load(folder));
    TROUPE_TRY(model_->load_state(folder));
    state_ = state;
    // Only an adaptive coefficient is restored; a fixed one comes from the configuration.
    if (settings_.algo.kl_target > 0 && settings_.algo.kl_coef != 0) {
      settings_.algo.kl_coef = state_.kl_coef;
    } else {
      state_.kl_coef = settings_.algo.kl_coef;
    }
    return {};
  }

 private:
  // Log-probs of the plan's tokens under the current weights.
  core::Result<TokenTable<float>> score(const std::vector<experience::Group>& groups,
                                        const UpdatePlan& plan) {
    const auto weights = model_->packed();
    TokenTable<float> scored(groups.size());
    for (const MiniBatch& mini : plan.mini_batches) {
      for (const MicroBatch& micro : mini.micro_batches) {
        TROUPE_TRY_ASSIGN(logprobs, runner_.score(*weights, groups, micro));
        scatter_scored(groups, micro, logprobs, scored);
      }
    }
    return scored;
  }

  // Returns how far the policy was from the anchor before the step: the tokens' mean of
  // x - 1 - log x, x = exp(l - l_p); 0 if the step was skipped.
  core::Result<double> optimiser_step(const MiniBatch& mini, UpdateTotals& totals) {
    ObjectiveStats stats;
    std::vector<double> losses;  // of the micro-batches that ran
    double ptx_nll = 0, aux = 0, rows = 0;
    for (const MicroBatch& micro : mini.micro_batches)
      rows += static_cast<double>(micro.rows);
    const auto accumulate = [&](const model::PackedWeights& weights) -> core::Result<double> {
      for (const MicroBatch& micro : mini.micro_batches) {
        model_->begin_micro_batch(static_cast<double>(micro.rows) / rows, micro.learns);
        TROUPE_TRY_ASSIGN(part, runner_.run(weights, *update_, micro));
        ++totals.micro_batches;
        losses.push_back(part.loss);
        if (!std::isfinite(part.loss)) return part.loss;
        stats.add(part);
        aux += model_->aux_loss();
      }
      stats.loss += model_->aux_loss_coef() * aux;
      if (!ptx_) return stats.loss;
      const PtxTerm::Step texts = ptx_->take(state_.ptx_cursor, model_->lanes());
      state_.ptx_cursor += texts.texts;
      for (std::size_t part = 0; part < texts.parts.size(); ++part) {
        model_->begin_micro_batch(0);
        TROUPE_TRY_ASSIGN(nll, ptx_->add(weights, texts, part));
        ptx_nll += nll;
        if (!std::isfinite(nll)) break;
      }
      stats.loss += ptx_->coef() * ptx_nll;
      return stats.loss;
    };
    auto step = model_->step(accumulate, [&] { return name_of_groups(*update_, mini); });
    if (!step) step = stopped(mini, step.error(), losses);
    if (!step) return step.failure();
    ++totals.steps;
    totals.lr = step->lr;
    if (!step->applied) {
      ++totals.skipped;
      return 0.0;
    }
    if (average_) average_->add(model_->team(), model_->master());
    totals.grad_norm_sum += step->grad_norm;
    totals.ptx_nll_sum += ptx_nll;
    totals.aux_sum += aux;
    totals.stats.add(stats);
    return stats.tokens == 0 ? 0.0 : stats.kl_old_sum / static_cast<double>(stats.tokens);
  }

  // Writes the mini-batch that stops the run to a file and names the file in the error.
  core::Result<StepReport> stopped(const MiniBatch& mini,
                                   core::Error error,
                                   const std::vector<double>& losses) {
    if (error.code != core::ErrorCode::kNumeric || settings_.dump_folder.empty()) {
      return core::fail(error.code, error.message);
    }
    TokenTable<float> now(update_->groups.size());
    const auto weights = model_->packed();
    for (const MicroBatch& micro : mini.micro_batches) {
      auto logprobs = runner_.score(*weights, update_->groups, micro);
      if (logprobs) scatter_scored(update_->groups, micro, *logprobs, now);
    }
    const auto path =
        settings_.dump_folder / ("nonfinite_step_" + std::to_string(version() - 1) + ".jsonl");
    auto written = dump_batch(path, *update_, mini, now, losses);
    const std::string note = written
                                 ? "; the batch is in " + path.string()
                                 : "; its batch could not be written: " + written.error().message;
    return core::fail(error.code, error.message + note);
  }

  TrainerSettings settings_;  // algo.kl_coef changes: it is the current coefficient
  std::unique_ptr<TrainableModel> model_;
  MicroBatchRunner runner_;
  std::optional<WeightAverage> average_;
  std::optional<PtxTerm> ptx_;
  RlState state_;
  std::optional<UpdateContext> update_;  // between prepare() and learn()
};

}  // namespace

core::Result<std::unique_ptr<PolicyTrainer>> PolicyTrainer::create(
    std::unique_ptr<model::ParamStore> master, TrainerSettings settings, core::TeamRunner& team) {
  TROUPE_TRY(check_settings(settings));
  TROUPE_TRY_ASSIGN(trained, TrainableModel::create(std::move(master), settings.optim,
                                                    settings.total_steps, team));
  std::unique_ptr<PolicyTrainer> trainer =
      std::make_unique<PolicyTrainerImpl>(std::move(trained), settings);
  return trainer;
}

}  // namespace troupe::learn
