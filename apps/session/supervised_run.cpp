#include "apps/session/supervised_run.hpp"

#include "apps/cli/placement.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/run_reporter.hpp"
#include "apps/session/run_summary.hpp"
#include "apps/session/supervised_inputs.hpp"
#include "kernels/ops.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/arithmetic.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/save_pace.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <optional>

namespace troupe::app {
namespace {

using core::ErrorCode;
using core::Result;

std::string figures_text(const actors::Metrics& figures) {
  std::string text;
  for (const auto& [name, value] : figures) {
    if (name.starts_with("time/")) continue;
    char number[64];
    std::snprintf(number, sizeof number, "%.5g", value);
    text += (text.empty() ? "" : ", ") + name.substr(name.find('/') + 1) + " " + number;
  }
  return text;
}

class SupervisedRun {
 public:
  SupervisedRun(config::TrainConfig config, config::Origins origins)
      : config_(std::move(config)), origins_(std::move(origins)), begin_(clock_.now()) {}

  Result<void> run() {
    TROUPE_TRY(load());
    TROUPE_TRY(begin());
    if (!reporter_) return say_finished(*start_->checkpoint, inputs_.steps, "steps");
    const auto ended = train();
    if (!ended && ended.error().code != ErrorCode::kInterrupted) return save_last(ended.error());
    summary();
    return ended;
  }

 private:
  // Loads model, reference and trainer.
  Result<void> load() {
    const std::string device = config_.actor.device.front().text();
    TROUPE_TRY_SET(team_, make_team("actor.device " + device, {device, config_.train.threads}));
    TROUPE_TRY_SET(inputs_, load_supervised(config_));
    const learn::SupervisedSettings settings = supervised_settings(config_, inputs_.steps);
    const bool scores = settings.loss.method->scores;
    TROUPE_TRY_ASSIGN(
        master, model::load_model(inputs_.model_folder,
                                  scores ? model::HeadKind::kScore : model::HeadKind::kLanguage,
                                  static_cast<std::uint64_t>(config_.train.seed)));
    std::shared_ptr<model::PackedWeights> reference;
    if (settings.loss.method->reference && !inputs_.reference_folder.empty()) {
      TROUPE_TRY_ASSIGN(frozen, model::load_model(inputs_.reference_folder));
      reference = std::make_shared<model::PackedWeights>(frozen->spec(), settings.optim.panels,
                                                         team_->memory());
      team_->run([&](core::Team member) {
        kernels::flush_denormals();
        reference->fill(member, *frozen, 0);
      });
    }
    TROUPE_TRY_ASSIGN(trainers, learn::trainers());
    TROUPE_TRY_ASSIGN(
        trainer, trainers->supervised(std::move(master), std::move(reference), settings, *team_));
    trainer_ = std::move(trainer);
    TROUPE_TRY(trainer_->check(*inputs_.train));
    if (inputs_.evaluation) TROUPE_TRY(trainer_->check(*inputs_.evaluation));
    load_s_ = std::chrono::duration<double>(clock_.now() - begin_).count();
    return {};
  }

  // Opens run folder, checkpoint and reporter.
  Result<void> begin() {
    TROUPE_TRY_ASSIGN(contents, contents_of(config_));
    contents_.emplace(std::move(contents));
    TROUPE_TRY_ASSIGN(start, start_run(config_, origins_, *contents_));
    start_.emplace(std::move(start));
    if (start_->checkpoint) {
      if (start_->checkpoint->step >= inputs_.steps) return {};  // nothing left to do
      TROUPE_TRY(trainer_->load_state(start_->checkpoint->folder / "policy"));
    }
    TROUPE_TRY_SET(reporter_, RunReporter::open(config_, *start_, inputs_.steps, clock_, *contents_,
                                                inputs_.notes));
    return begin_in(model::arithmetic_name(*team_, forward_dtype(config_)), *start_, *reporter_);
  }

  // Saves the last whole step when `error` ends the run. Returns the error with the place.
  Result<void> save_last(core::Error error) {
    if (const auto place = reporter_->check_place(); !place) {
      error = place.error();  // the run folder is gone: the real cause
      save_failed_ = false;
    }
    if (half_way_ || save_failed_ || saved_ == whole_) {
      return core::fail(std::move(error));
    }
    const std::string step = "step " + std::to_string(whole_);
    if (auto saved = save(whole_); saved) {
      error.message += "; " + step + " is saved in " + saved_at_.string();
    } else {
      error.message += "; " + step + " cannot be saved: " + saved.error().message;
    }
    return core::fail(std::move(error));
  }

  Result<void> train() {
    std::uint64_t done = saved_ = whole_ = trainer_->version();
    if (done == 0) TROUPE_TRY(evaluate(0));
    const auto every = [](std::int64_t steps, std::uint64_t at) {
      return steps > 0 && at % static_cast<std::uint64_t>(steps) == 0;
    };
    store::SavePace pace(seconds_of(60 * config_.ckpt.save_minutes), clock_.now());
    while (done < inputs_.steps) {
      TROUPE_TRY(step(done));
      ++done;
      const bool last = done == inputs_.steps;
      const bool stopping = reporter_->stop_requested() && !last;
      if (last || every(config_.eval.steps, done)) TROUPE_TRY(evaluate(done));
      const bool due = every(config_.ckpt.save_steps, done) || pace.due(clock_.now());
      if (last || stopping || due || reporter_->is_best(done)) {
        const core::TimePoint begin = clock_.now();
        TROUPE_TRY(save(done));
        pace.saved(begin, clock_.now());
      }
      if (stopping) {
        return core::fail(ErrorCode::kInterrupted, "stopped after step " + std::to_string(done) +
                                                       "; the same command goes on from there");
      }
    }
    return {};
  }

  Result<void> step(std::uint64_t done) {
    reporter_->on_phase("train");
    const core::TimePoint begin = clock_.now();
    const auto batch = static_cast<std::uint64_t>(config_.train.batch_size);
    std::vector<std::uint64_t> rows;
    for (std::uint64_t i = done * batch; i < (done + 1) * batch; ++i)
      rows.push_back(inputs_.order->row_at(i));
    half_way_ = true;
    auto result = trainer_->step(*inputs_.train, rows);
    if (!result) {
      if (result.error().code != ErrorCode::kNumeric) return result.failure();
      TROUPE_TRY_ASSIGN(file, dump(rows, done));
      return core::fail(ErrorCode::kNumeric,
                        result.error().message + "; the rows of that step are in " + file);
    }
    half_way_ = false;
    whole_ = done + 1;
    actors::UpdateReport report;
    report.done = whole_;
    report.metrics = std::move(result->metrics);
    const double seconds = std::chrono::duration<double>(clock_.now() - begin).count();
    const auto add = [&](const char* name, double value) {
      report.metrics.emplace_back(name, value);
    };
    add("train/epoch",
        static_cast<double>((done + 1) * batch) / static_cast<double>(inputs_.order->rows()));
    add("train/targets", static_cast<double>(result->targets));
    add("train/micro_batches", static_cast<double>(result->micro_batches));
    add("perf/tokens_per_s", static_cast<double>(result->tokens) / seconds);
    add("time/step", seconds);
    return reporter_->on_update(report);
  }

  Result<void> evaluate(std::uint64_t done) {
    if (!inputs_.evaluation) return {};
    reporter_->on_phase("evaluate");
    const core::TimePoint begin = clock_.now();
    TROUPE_TRY_ASSIGN(result, trainer_->evaluate(*inputs_.evaluation));
    const double seconds = std::chrono::duration<double>(clock_.now() - begin).count();
    if (done == inputs_.steps && config_.method == config::kRm) {
      trainer_->set_score_scale(result.score_mean, result.score_std);
    }
    actors::Metrics figures = std::move(result.metrics);
    figures.emplace_back("time/eval", seconds);
    const std::string line = "held-out after " + std::to_string(done) +
                             " steps: " + figures_text(figures) + " on " +
                             std::to_string(inputs_.evaluation->size()) + " rows";
    return reporter_->on_figures(done, figures, line);
  }

  Result<void> save(std::uint64_t done) {
    save_failed_ = true;
    reporter_->on_phase("checkpoint");
    TROUPE_TRY_ASSIGN(folder, reporter_->begin_checkpoint(done));
    const std::filesystem::path state = folder / "policy";
    TROUPE_TRY(store::make_folder(state));
    TROUPE_TRY(trainer_->save_state(state));
    if (done == inputs_.steps || reporter_->is_best(done)) {
      TROUPE_TRY(model::save_model(trainer_->master(), folder / "model", model::StorageDtype::kF32,
                                   inputs_.model_folder));
      if (trainer_->has_adapter()) {
        TROUPE_TRY(trainer_->save_adapter(folder / "adapter", config_.actor.model_name_or_path));
      }
    }
    TROUPE_TRY_ASSIGN(at, reporter_->commit_here(done));
    save_failed_ = false;
    saved_ = done;
    saved_at_ = std::move(at);
    return {};
  }

  // Writes the rows of a step that ended the run to a file for the user; returns its path.
  Result<std::string> dump(const std::vector<std::uint64_t>& rows, std::uint64_t done) const {
    std::string text;
    for (const std::uint64_t index : rows) {
      const data::SupervisedRow row = inputs_.train->row(index);
      nlohmann::ordered_json line = {{"row", inputs_.train->where(index)}};
      const auto put = [&line](const char* name, std::span<const std::int32_t> tokens) {
        if (!tokens.empty()) line[name] = std::vector<std::int32_t>(tokens.begin(), tokens.end());
      };
      put("prompt", row.prompt);
      put("answer", row.answer);
      put("rejected", row.rejected);
      text += line.dump() + "\n";
    }
    const auto file =
        start_->folder.path() / ("failed_step_" + std::to_string(done + 1) + ".jsonl");
    TROUPE_TRY(store::replace_file(file, text));
    return file.string();
  }

  void summary() {
    const auto phases = reporter_->phases();
    const std::uint64_t done = reporter_->done();
    reporter_.reset();  // ends the progress display before the table
    print_held_out(start_->folder, done);
    print_summary(start_->folder, done, load_s_, phases);
  }

  const config::TrainConfig config_;
  const config::Origins origins_;
  const core::SteadyClock clock_;
  const core::TimePoint begin_;
  std::unique_ptr<core::TeamRunner> team_;
  SupervisedInputs inputs_;
  std::unique_ptr<learn::SupervisedTrainer> trainer_;
  std::optional<Hashing> contents_;
  std::optional<store::RunStart> start_;
  std::unique_ptr<RunReporter> reporter_;
  double load_s_ = 0;
  std::uint64_t whole_ = 0;   // steps completed
  std::uint64_t saved_ = 0;   // steps in the newest checkpoint
  bool half_way_ = false;     // a step has begun and not been completed
  bool save_failed_ = false;  // the last save failed
  std::filesystem::path saved_at_;
};

}  // namespace

Result<void> run_supervised(config::TrainConfig config, config::Origins origins) {
  SupervisedRun run(std::move(config), std::move(origins));
  return run.run();
}

}  // namespace troupe::app
