#include "actors/supervised/step_controller.hpp"

#include "actors/controller/disk_patience.hpp"
#include "actors/controller/snapshot.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <functional>
#include <memory>

namespace troupe::actors::supervised {
namespace {

double seconds_since(core::TimePoint from, core::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string figures_text(const controller::Metrics& figures) {
  std::string text;
  for (const auto& [name, value] : figures) {
    text += (text.empty() ? "" : ", ") + name.substr(name.find('/') + 1) +
            core::printed(" %.5g", value);
  }
  return text;
}

async::task<core::Result<void>> as_task(core::Result<void> result) {
  co_return result;
}

StepRules rules_of(const controller::RunPlan& plan) {
  StepRules rules;
  rules.steps = plan.updates;
  rules.first = plan.first_update;
  rules.evaluates = plan.evaluation_groups > 0;
  rules.evaluation_steps = plan.evaluation.steps;
  rules.save_steps = plan.save_steps;
  rules.owes_evaluation = plan.evaluations_due(plan.first_update) > 0 && plan.first_update > 0;
  return rules;
}

}  // namespace

StepController::StepController(RoleContext context,
                               controller::RunPlan plan,
                               StepPlan steps,
                               controller::RunListener& listener)
    : controller::Conductor(std::move(context), std::move(plan), listener),
      step_plan_(std::move(steps)),
      stop_(run_, checkpointer_, [] { return false; }) {}

void StepController::begin_beside() {
  run_.scope->spawn("", stop_.watch());
}

async::task<core::Result<void>> StepController::loop() {
  StepLoop steps(rules_of(run_.plan), run_.known);
  for (;;) {
    if (run_.ending) co_return core::fail(*run_.ending);
    co_await stop_.pass();
    StepSigns signs;
    signs.stop = run_.listener.stop_requested();
    signs.hurried = run_.listener.stop_deadline().has_value();
    signs.due = checkpointer_.due() || run_.listener.log_is_long(run_.done);
    signs.best = run_.listener.is_best(run_.done);
    const StepAct act = steps.next(signs);
    if (act == StepAct::kFinish) co_return core::Result<void>();
    if (act == StepAct::kStop) {
      co_return core::fail(ErrorCode::kInterrupted, "stopped after " + run_.plan.name_of(run_.done),
                           "the same command continues from there");
    }
    if (act == StepAct::kTrain) {
      TROUPE_CO_TRY(co_await train());
      steps.trained();
    } else if (act == StepAct::kEvaluate) {
      TROUPE_CO_TRY(co_await evaluate());
      steps.evaluated();
    } else {
      const bool models = signs.best || steps.at_end();
      TROUPE_CO_TRY(co_await checkpointer_.save(run_.done, models));
      steps.saved();
    }
  }
}

// The rows of a step whose loss is not finite, time after time, are left for the user.
core::Failure StepController::failed(const core::Error& error) {
  if (error.code != ErrorCode::kNumeric) return checkpointer_.update_failed(run_.done, error);
  const auto file = step_plan_.dump_rows(run_.done);
  if (!file) return file.failure();
  return core::fail(error.also("the rows of that step are in " + *file));
}

async::task<core::Result<void>> StepController::train() {
  const auto whole = run_.whole_step();
  const core::TimePoint begin = run_.context.timers->now();
  run_.listener.on_phase("train");
  run_.grace.begin(controller::Grace::Step::kTrain, begin);
  TrainUpdate request{run_.done, run_.plan.groups};
  auto trained = co_await ask(run_.context, controller::kPolicyRole, request);
  if (!trained) co_return failed(trained.error());
  const bool repeated = run_.done < run_.known;
  version_ = trained->version;
  ++run_.done;
  run_.committed = run_.done;
  auto report =
      std::make_shared<const controller::UpdateReport>(report_of(std::move(*trained), begin));
  std::function<async::task<core::Result<void>>()> step = [this, report] {
    return as_task(run_.listener.on_update(*report));
  };
  TROUPE_CO_TRY(co_await controller::patiently(
      &run_, "the metrics of " + run_.plan.name_of(run_.done), std::move(step)));
  if (repeated) run_.grace.skip();
  run_.grace.end(run_.context.timers->now());
  co_return core::Result<void>();
}

controller::UpdateReport StepController::report_of(Trained trained, core::TimePoint begin) const {
  controller::UpdateReport report;
  report.done = run_.done;
  report.metrics = std::move(trained.metrics);
  const double rows = static_cast<double>(run_.done * run_.plan.groups + step_plan_.passed_over);
  const auto at = std::find_if(report.metrics.begin(), report.metrics.end(),
                               [](const auto& metric) { return metric.first == "train/targets"; });
  report.metrics.emplace(at, "train/epoch", rows / static_cast<double>(step_plan_.epoch_rows));
  report.metrics.emplace_back("time/step", seconds_since(begin, run_.context.timers->now()));
  return report;
}

async::task<core::Result<void>> StepController::evaluate() {
  const core::TimePoint begin = run_.context.timers->now();
  run_.listener.on_phase("evaluate");
  run_.grace.begin(controller::Grace::Step::kEvaluate, begin);
  EvaluateRows request{run_.done, run_.done == run_.plan.updates};
  auto result = co_await ask(run_.context, controller::kPolicyRole, request);
  if (!result) {
    co_return checkpointer_.update_failed(run_.done, result.error(),
                                          "the evaluation after " + run_.plan.name_of(run_.done));
  }
  const core::TimePoint end = run_.context.timers->now();
  run_.grace.end(end);
  const std::string line = "held-out after " + std::to_string(run_.done) +
                           " steps: " + figures_text(result->metrics) + " on " +
                           std::to_string(run_.plan.evaluation_groups) + " rows";
  auto figures = std::make_shared<controller::Metrics>(std::move(result->metrics));
  figures->emplace_back("time/eval", seconds_since(begin, end));
  std::function<async::task<core::Result<void>>()> step = [this, figures, line] {
    return as_task(run_.listener.on_figures(run_.done, *figures, line));
  };
  co_return co_await controller::patiently(&run_, "the figures of the evaluation", std::move(step));
}

async::task<core::Result<Status>> StepController::on(QueryStatus) {
  controller::ControllerSnapshot now;
  now.version = version_;
  now.done = now.issued = run_.done;
  now.counts = run_.counts;
  co_return Status{controller::snapshot_json(now)};
}

wire::Amounts StepController::amounts() const {
  return {{"version", static_cast<double>(version_)}, {"updates", static_cast<double>(run_.done)}};
}

}  // namespace troupe::actors::supervised
