// The controller of supervised training: has the policy role take the steps of the run and
// evaluate, and saves. StepLoop decides what comes next. It sees step numbers and figures, never a
// row. Runs on its strand.
#pragma once

#include "actors/controller/conductor.hpp"
#include "actors/controller/early_stop.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rows.hpp"
#include "actors/supervised/step_loop.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe::actors::supervised {

// What a supervised run needs besides its plan, whose `groups` are the rows of a step and whose
// `evaluation_groups` are the held-out rows.
struct StepPlan {
  std::uint64_t epoch_rows = 1;   // places of one pass over the training rows
  std::uint64_t passed_over = 0;  // places that no step takes
  // Writes the rows of step `step` (from 0) to a file for the user; returns its path. On the
  // strand.
  std::function<core::Result<std::string>(std::uint64_t step)> dump_rows;
};

class StepController final : public controller::Conductor {
 public:
  StepController(RoleContext context,
                 controller::RunPlan plan,
                 StepPlan steps,
                 controller::RunListener& listener);

  // A repeated request gets the state of that moment.
  async::task<core::Result<Status>> on(QueryStatus request);
  wire::Amounts amounts() const;

 private:
  void begin_beside() override;
  async::task<core::Result<void>> loop() override;
  async::task<core::Result<void>> train();
  async::task<core::Result<void>> evaluate();
  core::Failure failed(const core::Error& error);
  controller::UpdateReport report_of(Trained trained, core::TimePoint begin) const;

  const StepPlan step_plan_;
  controller::EarlyStop stop_;
  core::Version version_ = 0;
};

}  // namespace troupe::actors::supervised
