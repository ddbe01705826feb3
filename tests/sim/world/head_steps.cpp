// Sessions of supervised runs.
#include "actors/protocol/role_adapter.hpp"
#include "actors/supervised/step_controller.hpp"
#include "tests/sim/world/conductor_role.hpp"
#include "tests/sim/world/supervised.hpp"

#include <algorithm>

namespace troupe::sim {

using core::Result;

namespace {
constexpr std::chrono::milliseconds kSavePeriod{700};  // of runs that save by time
}  // namespace

// Steps and evaluations after the checkpoint are made again; without one, all are.
Result<void> Head::take_up_steps(std::uint64_t first) {
  kept_.clear();
  std::string text;
  for (const StepLine& line : read_steps(stage_.disk.read(kStepsFile))) {
    if (first == 0 || line.done > first) continue;
    kept_.push_back(line);
    text += line.text();
  }
  TROUPE_TRY(disk_.write_file(kStepsFile, text));
  stage_.disk.sync(kStepsFile);
  return {};
}

std::unique_ptr<FakeListener> Head::step_listener(std::uint64_t first) {
  return std::make_unique<StepListener>(stage_.time, stage_.truth, disk_, kept_, first);
}

cluster::RoleHost::Factory Head::rows_role() {
  const actors::supervised::TrainingRows rows = rows_of(stage_.plan);
  return actors::factory_of<actors::supervised::RowsRole>(
      [rows](actors::RoleContext) { return std::make_shared<actors::supervised::RowsRole>(rows); });
}

cluster::RoleHost::Factory Head::step_controller(std::string checkpoint, std::uint64_t first) {
  const WorldPlan& shape = stage_.plan;
  actors::controller::RunPlan plan;
  plan.unit = "step";
  plan.logs_groups = false;
  plan.first_update = first;
  plan.updates = plan.logged_until = shape.updates;
  plan.groups = shape.groups;
  plan.save_steps = shape.save_steps;
  plan.save_minutes = shape.save_steps == 0 ? kSavePeriod : core::Duration{};
  if (shape.evaluates) {
    plan.evaluation_groups = kHeldOutRows;
    plan.evaluation.steps = shape.evaluation_steps;
    const bool made = std::any_of(kept_.begin(), kept_.end(), [&](const StepLine& line) {
      return line.evaluation && line.done == first;
    });
    plan.evaluations_owed = first > 0 && !made ? 1 : 0;
  }
  plan.restarts = true;
  plan.failed = failed_;
  actors::supervised::StepPlan steps;
  steps.epoch_rows = kTrainingRows;
  steps.dump_rows = [](std::uint64_t) { return Result<std::string>("/run/rows"); };
  return [this, plan, steps, checkpoint](
             const cluster::RoleServices& services) -> Result<std::unique_ptr<cluster::Role>> {
    auto role = std::make_shared<actors::supervised::StepController>(
        actors::context_of(services), plan, steps, *session_->listener);
    return conducting(std::move(role), checkpoint, services);
  };
}

}  // namespace troupe::sim
