#include "apps/session/supervised_run.hpp"

#include "actors/supervised/rows_role.hpp"
#include "actors/supervised/rows_state.hpp"
#include "actors/supervised/step_controller.hpp"
#include "apps/session/eval_figures.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/supervised_model.hpp"
#include "apps/session/run_life.hpp"
#include "apps/session/run_summary.hpp"
#include "apps/session/supervised_inputs.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::session {
namespace {

// Writes the rows of a step that ended the run to a file for the user; returns its path.
class RowDump {
 public:
  RowDump(actors::supervised::TrainingRows rows, std::uint64_t batch, std::filesystem::path folder)
      : rows_(std::move(rows)), batch_(batch), folder_(std::move(folder)) {}

  Result<std::string> operator()(std::uint64_t step) {
    std::string text;
    const auto rows = rows_.training();
    for (std::uint64_t place = step * batch_; place < (step + 1) * batch_; ++place) {
      TROUPE_TRY_ASSIGN(row, rows->at(place + rows_.passed_over));
      text += line_of(row);
    }
    const auto file = folder_ / ("failed_step_" + std::to_string(step + 1) + ".jsonl");
    TROUPE_TRY(store::replace_file(file, text));
    return file.string();
  }

 private:
  static std::string line_of(const data::SupervisedRow& row) {
    nlohmann::ordered_json line = {{"row", row.where()}};
    const auto put = [&line](const char* name, std::span<const std::int32_t> tokens) {
      if (!tokens.empty()) line[name] = std::vector<std::int32_t>(tokens.begin(), tokens.end());
    };
    put("prompt", row.prompt);
    put("answer", row.answer);
    put("rejected", row.rejected);
    return line.dump() + "\n";
  }

  actors::supervised::TrainingRows rows_;
  const std::uint64_t batch_;
  const std::filesystem::path folder_;
};

class SupervisedRun final : public RunLife {
 public:
  using RunLife::RunLife;

 private:
  Result<void> run_session() override {
    if (!inputs_) {
      TROUPE_TRY(check_role_devices(config_));
      TROUPE_TRY_SET(inputs_, load_supervised(config_));
    }
    const std::uint64_t steps = inputs_->steps;
    Preloaded preloaded;
    if (loopback()) {
      TROUPE_TRY_SET(preloaded.params, supervised_params(config_));
    }
    TROUPE_TRY_ASSIGN(start, open_folder());
    if (start.checkpoint && start.checkpoint->step >= steps) {
      return say_finished(config_, *start.checkpoint, steps, "steps");
    }
    SessionParts parts;
    actors::controller::RunPlan plan = step_plan(config_, steps, held_out_rows());
    resume(start, parts, plan);
    if (start.checkpoint && evaluations_in(start.folder.metrics_file(), done_) == 0)
      plan.evaluations_owed = 1;
    TROUPE_TRY_ASSIGN(reporter, open_reporter(start, steps, inputs_->notes));
    if (start.checkpoint) {
      TROUPE_TRY_ASSIGN(before, actors::supervised::read_rows_state(start.checkpoint->folder));
      passed_over_ = std::max(passed_over_, before);
    }
    const actors::supervised::TrainingRows rows{inputs_->training, inputs_->evaluation,
                                                passed_over_};
    parts.data = actors::factory_of<actors::supervised::RowsRole>([rows](actors::RoleContext) {
      return std::make_shared<actors::supervised::RowsRole>(rows);
    });
    actors::supervised::StepPlan of_steps;
    of_steps.epoch_rows = inputs_->rows;
    of_steps.passed_over = passed_over_;
    of_steps.dump_rows = RowDump(rows, plan.groups, start.folder.path());
    parts.conductor = [plan, of_steps,
                       told = reporter.get()](const cluster::RoleServices& services) {
      return hosted(std::make_shared<actors::supervised::StepController>(
                        actors::context_of(services), plan, of_steps, *told),
                    services);
    };
    auto ended = conduct(std::move(parts), std::move(preloaded), steps, start, *reporter);
    if (!ended) {
      // The rows of the steps since then, that of the failure included, are passed over.
      const auto pass_over = [&, failed = reporter->done() + 1](std::uint64_t to) {
        passed_over_ += (failed - std::min(failed, to)) * plan.groups;
        return Result<void>();
      };
      ended = go_back(ended.error(), start, *reporter, pass_over);
    }
    if (!settle(ended, *reporter)) return ended;
    const auto phases = reporter->phases();
    const std::uint64_t done = reporter->done();
    reporter.reset();  // ends the live line before the table
    print_held_out(start.folder, done);
    print_summary(config_, start.folder, done, load_s_, phases, inputs_->has_chats);
    return ended;
  }

  std::uint64_t held_out_rows() const {
    return inputs_->evaluation ? inputs_->evaluation->size() : 0;
  }

  std::optional<SupervisedInputs> inputs_;  // of all sessions
  std::uint64_t passed_over_ = 0;           // places of the rows' order
};

}  // namespace

Result<void> run_supervised(config::TrainConfig config, config::Origins origins) {
  return SupervisedRun(std::move(config), std::move(origins)).run();
}

}  // namespace troupe::session
