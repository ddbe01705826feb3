#include "runtime/learn/rl/trainer.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/learn/advantage/kl_control.hpp"
#include "runtime/learn/model/trainable_model.hpp"
#include "runtime/learn/optim/weight_average.hpp"
#include "runtime/learn/ranks/input_crc.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/rl/batch_dump.hpp"
#include "runtime/learn/rl/micro_batch_runner.hpp"
#include "runtime/learn/rl/prepare_update.hpp"
#include "runtime/learn/rl/rl_state.hpp"
#include "runtime/learn/rl/update_report.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace troupe::learn {
namespace {

// Decay of the moving mean of the updates' scores (RlState::score_trend), per update.
constexpr double kScoreTrendKeep = 0.9;

// What a micro-batch of the policy or of the ptx texts tells about itself.
struct PolicyFigures {
  double loss = 0;  // of its own term
  double aux = 0;   // its share of the load-balancing loss of experts
  ObjectiveStats stats;
};

// The micro-batches of one optimiser step, those of the ptx texts after the policy's.
struct StepPlan {
  std::vector<StepPart> parts;
  PtxTerm::Step texts;
};

// The sums over a step's micro-batches, added in the plan's order.
struct StepSums {
  ObjectiveStats stats;        // its loss has all terms
  std::vector<double> losses;  // of the policy's micro-batches
  double ptx_nll = 0, aux = 0;
  bool policy_finite = true;
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
    state_.kl_coef = settings_.algo.kl.init_coef;
    if (settings_.ptx != nullptr) {
      ptx_.emplace(settings_.ptx, settings_.batch.micro_tokens_max, model_->team(),
                   model_->forward());
    }
    if (settings_.ema_beta >= 0) average_.emplace(model_->master(), settings_.ema_beta);
  }

  core::Result<ValueTargets> prepare(std::vector<experience::Group> groups) override {
    model_->team().run([](core::Team) { kernels::flush_denormals(); });
    update_.reset();
    RunningMoments moments = state_.moments;  // kept as they are if the update fails here
    const ScoreStart score_start = [this](const auto& all, const UpdatePlan& plan) {
      return score(all, plan);
    };
    TROUPE_TRY_ASSIGN(update, prepare_update(settings_, version(), std::move(groups), score_start,
                                             moments, model_->ranks()));
    if (RankGroup* const ranks = model_->ranks()) {
      const InputCrc given =
          InputCrc().add(update.groups).add(update.advantages).add(update.token_weights);
      TROUPE_TRY(ranks->all_same(given.value()));
    }
    state_.moments = moments;
    update_.emplace(std::move(update));
    return ValueTargets{std::move(update_->returns)};
  }

  core::Result<UpdateReport> learn() override {
    TROUPE_CHECK(update_.has_value(), "learn() comes after prepare()");
    UpdateTotals totals;
    if (state_.updates < settings_.freezing_steps) {
      totals.frozen = true;
      model_->pass(static_cast<core::Version>(settings_.batch.max_epochs) *
                   update_->plan.mini_batches.size());
    } else {
      bool stop = false;
      for (std::int64_t epoch = 0; epoch < settings_.batch.max_epochs; ++epoch) {
        for (const MiniBatch& mini : update_->plan.mini_batches) {
          if (stop) {
            // Counted as a step without training, so the schedule depends only on updates.
            model_->pass();
            ++totals.left_out;
            continue;
          }
          TROUPE_TRY_ASSIGN(moved, optimiser_step(mini, totals));
          stop = settings_.algo.kl.stop > 0 && moved > settings_.algo.kl.stop;
        }
      }
    }
    UpdateReport done = update_report(settings_, state_, *update_, totals, version());
    const double score = update_->score;
    state_.score_trend = state_.updates == 0
                             ? score
                             : kScoreTrendKeep * state_.score_trend + (1 - kScoreTrendKeep) * score;
    ++state_.updates;
    if (settings_.algo.kl.init_coef != 0) {
      state_.kl_coef =
          steered_kl_coef(state_.kl_coef, update_->kl_of_sample, settings_.algo.kl.target,
                          update_->plan.samples, settings_.algo.kl.horizon);
      settings_.algo.kl.init_coef = state_.kl_coef;
    }
    update_.reset();
    return done;
  }

  std::shared_ptr<const model::PackedWeights> packed() override { return model_->packed(); }
  bool divided() const override { return model_->divided(); }
  core::Result<void> gather() override { return model_->gather(); }
  core::Result<void> each_part(const See& see) override { return model_->each_part(see); }
  const model::ParamStore& master() const override { return model_->master(); }
  const model::ParamStore* average() const override {
    return average_ ? &average_->weights() : nullptr;
  }
  core::Version version() const override { return model_->version(); }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::filesystem::path& tokenizer_from) const override {
    if (average_) {
      TROUPE_TRY(model_->write_once([&] {
        const model::ModelFolder ema{folder.parent_path() / "ema", settings_.save_dtype,
                                     tokenizer_from};
        return model::write_model(average_->weights(), ema, true);
      }));
    }
    TROUPE_TRY(model_->save_model({folder, settings_.save_dtype, tokenizer_from}));
    if (!model_->has_adapter()) return {};
    return model_->write_once([&] {
      return model_->save_adapter(folder.parent_path() / "adapter", tokenizer_from.string());
    });
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    TROUPE_TRY(model_->save_state(folder));
    return model_->write_once([&]() -> core::Result<void> {
      if (average_) {
        TROUPE_TRY_ASSIGN(file, average_->save(folder));
        TROUPE_TRY(store::note_written(folder, {&file, 1}));
      }
      return state_.save(folder);
    });
  }

  core::Result<void> load_state(const std::filesystem::path& folder) override {
    TROUPE_TRY_ASSIGN(state, RlState::load(folder));
    if (average_) TROUPE_TRY(average_->load(folder));
    TROUPE_TRY(model_->load_state(folder));
    state_ = state;
    // Only an adaptive coefficient is restored; a fixed one comes from the configuration.
    if (settings_.algo.kl.target > 0 && settings_.algo.kl.init_coef != 0) {
      settings_.algo.kl.init_coef = state_.kl_coef;
    } else {
      state_.kl_coef = settings_.algo.kl.init_coef;
    }
    return {};
  }

 private:
  // Log-probs of the plan's tokens under the current weights.
  core::Result<TokenTable<float>> score(const std::vector<experience::Group>& groups,
                                        const UpdatePlan& plan) {
    TokenTable<float> scored(groups.size());
    for (const MiniBatch& mini : plan.mini_batches)
      TROUPE_TRY(score(groups, mini, scored));
    return scored;
  }

  // Scores one mini-batch, into `scored`. With ranks each scores some micro-batches.
  core::Result<void> score(const std::vector<experience::Group>& groups,
                           const MiniBatch& mini,
                           TokenTable<float>& scored) {
    const auto weights = model_->pass_weights();
    std::vector<std::size_t> counts;
    for (const MicroBatch& micro : mini.micro_batches)
      counts.push_back(static_cast<std::size_t>(micro.tokens));
    TROUPE_TRY_ASSIGN(all, share_parts<float>(
                               model_->ranks(), counts,
                               [&](std::size_t i, std::vector<float>& to) -> core::Result<void> {
                                 TROUPE_TRY_ASSIGN(
                                     own, runner_.score(*weights, groups, mini.micro_batches[i]));
                                 to.insert(to.end(), own.begin(), own.end());
                                 return {};
                               },
                               model_->passes()));
    auto next = all.begin();
    for (const MicroBatch& micro : mini.micro_batches) {
      const auto end = next + static_cast<std::ptrdiff_t>(micro.tokens);
      scatter_scored(groups, micro, {next, end}, scored);
      next = end;
    }
    return {};
  }

  // Returns how far the policy was from the anchor before the step: the tokens' mean of
  // x - 1 - log x, x = exp(l - l_p); 0 if the step was skipped.
  core::Result<double> optimiser_step(const MiniBatch& mini, UpdateTotals& totals) {
    StepSums sums;
    const auto accumulate = [&](const model::PackedWeights& weights) -> core::Result<double> {
      const StepPlan plan = plan_step(mini);
      const auto run = [&](std::size_t part) { return run_part(weights, mini, plan, part); };
      TROUPE_TRY_ASSIGN(figures, model_->run_parts<PolicyFigures>(plan.parts, run));
      sums = add_up(mini, figures);
      totals.micro_batches += std::ssize(sums.losses);
      if (sums.policy_finite) state_.ptx_cursor += plan.texts.texts;
      return sums.stats.loss;
    };
    auto step = model_->step(accumulate, [&] { return name_of_groups(*update_, mini); });
    if (!step) step = stopped(mini, step.error(), sums.losses);
    if (!step) return step.failure();
    ++totals.steps;
    totals.lr = step->lr;
    if (!step->applied) {
      ++totals.skipped;
      return 0.0;
    }
    if (average_) {
      TROUPE_TRY(model_->gather());
      average_->add(model_->team(), model_->master());
    }
    totals.grad_norm_sum += step->grad_norm;
    totals.ptx_nll_sum += sums.ptx_nll;
    totals.aux_sum += sums.aux;
    totals.stats.add(sums.stats);
    return sums.stats.tokens == 0 ? 0.0
                                  : sums.stats.kl_old_sum / static_cast<double>(sums.stats.tokens);
  }

  StepPlan plan_step(const MiniBatch& mini) {
    StepPlan plan;
    double rows = 0;
    for (const MicroBatch& micro : mini.micro_batches)
      rows += static_cast<double>(micro.rows);
    for (const MicroBatch& micro : mini.micro_batches)
      plan.parts.push_back({static_cast<double>(micro.rows) / rows, micro.learns});
    if (ptx_) plan.texts = ptx_->take(state_.ptx_cursor, model_->lanes());
    plan.parts.resize(plan.parts.size() + plan.texts.parts.size());
    return plan;
  }

  core::Result<PolicyFigures> run_part(const model::PackedWeights& weights,
                                       const MiniBatch& mini,
                                       const StepPlan& plan,
                                       std::size_t part) {
    PolicyFigures figures;
    if (part >= mini.micro_batches.size()) {
      TROUPE_TRY_SET(figures.loss,
                     ptx_->add(weights, plan.texts, part - mini.micro_batches.size()));
      return figures;
    }
    TROUPE_TRY_SET(figures.stats, runner_.run(weights, *update_, mini.micro_batches[part]));
    figures.loss = figures.stats.loss;
    figures.aux = model_->aux_loss();
    return figures;
  }

  StepSums add_up(const MiniBatch& mini, const std::vector<PolicyFigures>& figures) const {
    StepSums sums;
    for (const PolicyFigures& part : figures) {
      if (sums.losses.size() == mini.micro_batches.size()) {
        sums.ptx_nll += part.loss;
        continue;
      }
      sums.losses.push_back(part.loss);
      sums.policy_finite = std::isfinite(part.loss);
      if (!sums.policy_finite) {
        sums.stats.loss = part.loss;
        return sums;
      }
      sums.stats.add(part.stats);
      sums.aux += part.aux;
    }
    sums.stats.loss += model_->aux_loss_coef() * sums.aux;
    if (ptx_) sums.stats.loss += ptx_->coef() * sums.ptx_nll;
    return sums;
  }

  // Writes the mini-batch that stops the run to a file and names the file in the error.
  core::Result<StepReport> stopped(const MiniBatch& mini,
                                   core::Error error,
                                   const std::vector<double>& losses) {
    if (error.code != core::ErrorCode::kNumeric || settings_.dump_folder.empty()) {
      return core::fail(std::move(error));
    }
    TokenTable<float> now(update_->groups.size());
    const auto path =
        settings_.dump_folder / ("nonfinite_step_" + std::to_string(version() - 1) + ".jsonl");
    TROUPE_TRY(score(update_->groups, mini, now));
    const core::Result<void> written =
        model_->write_once([&] { return dump_batch(path, *update_, mini, now, losses); });
    const std::string note = written ? "the batch is in " + path.string()
                                     : "its batch could not be written: " + written.error().message;
    return core::fail(error.also(note));
  }

  TrainerSettings settings_;  // algo.kl.init_coef changes: it is the current coefficient
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
  if (settings.ema_beta >= 0) TROUPE_TRY(trained->gather());  // the average begins with them
  std::unique_ptr<PolicyTrainer> trainer =
      std::make_unique<PolicyTrainerImpl>(std::move(trained), settings);
  return trainer;
}

}  // namespace troupe::learn
