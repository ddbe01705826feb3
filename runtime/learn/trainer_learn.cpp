// The second half of an update: an optimiser step for each mini-batch of each pass, and the report.
#include "runtime/core/check.hpp"
#include "runtime/learn/advantage.hpp"
#include "runtime/learn/batch_dump.hpp"
#include "runtime/learn/kl_control.hpp"
#include "runtime/learn/trainer_impl.hpp"

#include <cmath>

namespace troupe::learn {
namespace {

std::string name_of_groups(const UpdateContext& update, const MiniBatch& mini) {
  const auto& first = mini.micro_batches.front().parts.front();
  const auto& last = mini.micro_batches.back().parts.back();
  const std::string begin = ticket_name(update.groups[first.group].ticket);
  const std::string end = ticket_name(update.groups[last.group].ticket);
  return begin == end ? begin : begin + " to " + end;
}

double zero_share(const TokenTable<double>& advantages) {
  double flat = 0;
  for (const auto& group : advantages) {
    bool zero = true;
    for (const auto& sample : group) {
      for (const double advantage : sample)
        zero = zero && advantage == 0;
    }
    flat += zero ? 1 : 0;
  }
  return flat / static_cast<double>(advantages.size());
}

}  // namespace

core::Result<UpdateReport> PolicyTrainerImpl::learn() {
  TROUPE_CHECK(update_.has_value(), "learn() comes after prepare()");
  Totals totals;
  if (state_.updates < settings_.freezing_steps) {
    pass_all(totals);
  } else {
    bool stop = false;
    for (std::int64_t epoch = 0; epoch < settings_.batch.epochs; ++epoch) {
      for (const MiniBatch& mini : update_->plan.mini_batches) {
        if (stop) {
          // Left out, but counted: the schedule stays a function of the updates.
          model_->pass();
          ++totals.left_out;
          continue;
        }
        TROUPE_TRY_ASSIGN(moved, optimiser_step(mini, totals));
        stop = settings_.algo.kl_stop > 0 && moved > settings_.algo.kl_stop;
      }
    }
  }
  UpdateReport done = report(totals);
  add_alarms(done);
  state_.score_trend = state_.updates == 0
                           ? score_
                           : kScoreTrendKeep * state_.score_trend + (1 - kScoreTrendKeep) * score_;
  ++state_.updates;
  if (settings_.algo.kl_coef != 0) {
    KlController controller{state_.kl_coef};
    controller.update(kl_of_sample_, settings_.algo.kl_target, update_->plan.samples,
                      settings_.algo.kl_horizon);
    settings_.algo.kl_coef = state_.kl_coef = controller.coef;
  }
  update_.reset();
  return done;
}

// A frozen policy: schedule and version go on as if it had learnt.
void PolicyTrainerImpl::pass_all(Totals& totals) {
  totals.frozen = true;
  const auto steps =
      settings_.batch.epochs * static_cast<std::int64_t>(update_->plan.mini_batches.size());
  for (std::int64_t i = 0; i < steps; ++i)
    model_->pass();
}

// Returns the mean KL between the update's start and the weights before the step.
core::Result<double> PolicyTrainerImpl::optimiser_step(const MiniBatch& mini, Totals& totals) {
  ObjectiveStats stats;
  std::vector<double> losses;  // of the micro-batches that ran
  double ptx_nll = 0, aux = 0, rows = 0;
  for (const MicroBatch& micro : mini.micro_batches)
    rows += static_cast<double>(micro.rows);
  const auto accumulate = [&](const model::PackedWeights& weights) -> core::Result<double> {
    for (const MicroBatch& micro : mini.micro_batches) {
      model_->begin_micro_batch(static_cast<double>(micro.rows) / rows);
      TROUPE_TRY_ASSIGN(part, runner_.run(weights, *update_, micro));
      ++totals.micro_batches;
      losses.push_back(part.loss);
      if (!std::isfinite(part.loss)) return part.loss;
      stats.add(part);
      aux += model_->aux_loss();
    }
    stats.loss += model_->aux_loss_coef() * aux;
    if (!ptx_) return stats.loss;
    model_->begin_micro_batch(0);
    TROUPE_TRY_ASSIGN(texts, ptx_->add(weights, state_.ptx_cursor));
    state_.ptx_cursor += texts.texts;
    ptx_nll = texts.nll;
    stats.loss += ptx_->coef() * texts.nll;
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

// What made the run stop goes to a file that the message names.
core::Result<StepReport> PolicyTrainerImpl::stopped(const MiniBatch& mini,
                                                    core::Error error,
                                                    const std::vector<double>& losses) {
  if (error.code != core::ErrorCode::kNumeric || settings_.dump_folder.empty()) {
    return core::fail(error.code, error.message);
  }
  TokenTable<float> now(groups_.size());
  const auto weights = model_->packed();
  for (const MicroBatch& micro : mini.micro_batches) {
    auto logprobs = runner_.score(*weights, groups_, micro);
    if (logprobs) scatter_scored(groups_, micro, *logprobs, now);
  }
  const auto path =
      settings_.dump_folder / ("nonfinite_step_" + std::to_string(version() - 1) + ".jsonl");
  auto written = dump_batch(path, *update_, mini, now, losses);
  const std::string note = written ? "; the batch is in " + path.string()
                                   : "; its batch could not be written: " + written.error().message;
  return core::fail(error.code, error.message + note);
}

UpdateReport PolicyTrainerImpl::report(const Totals& totals) const {
  UpdateReport report;
  report.version = version();
  report.optimiser_steps = totals.steps;
  report.skipped_steps = totals.skipped;
  report.micro_batches = totals.micro_batches;
  report.policy_tokens = update_->plan.tokens;
  report.rows = update_->plan.rows;
  const std::int64_t applied = totals.steps - totals.skipped;
  auto& rows = report.metrics;
  if (applied > 0) {
    rows.emplace_back("policy/loss", totals.stats.loss / static_cast<double>(applied));
    rows.emplace_back("policy/grad_norm", totals.grad_norm_sum / static_cast<double>(applied));
    if (ptx_) {
      rows.emplace_back("policy/ptx_loss", totals.ptx_nll_sum / static_cast<double>(applied));
    }
    if (model_->aux_loss_coef() > 0) {
      rows.emplace_back("policy/aux_loss", totals.aux_sum / static_cast<double>(applied));
    }
  }
  if (totals.frozen) {
    rows.emplace_back("policy/frozen", 1.0);
  } else {
    rows.emplace_back("policy/lr", totals.lr);
    rows.emplace_back("policy/skipped_steps", static_cast<double>(totals.skipped));
  }
  if (settings_.algo.kl_stop > 0) {
    rows.emplace_back("policy/left_out_steps", static_cast<double>(totals.left_out));
  }
  if (applied > 0) {
    for (auto& row : totals.stats.metrics())
      rows.push_back(std::move(row));
  }
  if (settings_.algo.kl_coef != 0) {
    rows.emplace_back("kl/coef", settings_.algo.kl_coef);
    rows.emplace_back("kl/sample", kl_of_sample_);
  }
  rows.emplace_back("async/staleness_mean", staleness_.mean);
  rows.emplace_back("async/staleness_max", static_cast<double>(staleness_.max));
  rows.emplace_back("policy/zero_advantage_share", zero_share(update_->advantages));
  return report;
}

// A reward that rises while the policy runs away from what it was is the mark of a reward being
// gamed, or of off-policy noise.
void PolicyTrainerImpl::add_alarms(UpdateReport& report) const {
  bool far = false;
  for (const auto& [name, value] : report.metrics) {
    far = far || (name == "kl/rollout_train" && value > kRolloutKlAlarm);
    far = far || (name == "kl/ref" && value > kReferenceKlAlarm);
  }
  const bool up = state_.updates > 0 && score_ > state_.score_trend;
  report.metrics.emplace_back("alarm/reward_up_kl_high", far && up ? 1.0 : 0.0);
}

core::Result<void> PolicyTrainerImpl::save_state(const std::filesystem::path& folder) const {
  TROUPE_TRY(model_->save_state(folder));
  if (average_) TROUPE_TRY(average_->save(folder));
  return state_.save(folder);
}

core::Result<void> PolicyTrainerImpl::load_state(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(state, RlState::load(folder));
  if (average_) TROUPE_TRY(average_->load(folder));
  TROUPE_TRY(model_->load_state(folder));
  state_ = state;
  // Only a steered coefficient is state; a fixed one follows the configuration.
  if (settings_.algo.kl_target > 0 && settings_.algo.kl_coef != 0) {
    settings_.algo.kl_coef = state_.kl_coef;
  } else {
    state_.kl_coef = settings_.algo.kl_coef;
  }
  return {};
}

}  // namespace troupe::learn
