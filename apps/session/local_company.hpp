// A company in one process: every role on its own strand, all of them over the loopback network, the
// numeric ones taking turns on one device thread with all cores. Built, run once and taken down by the
// command that trains.
#pragma once

#include <memory>
#include <string>

#include "actors/controller/run_listener.hpp"
#include "actors/controller/run_plan.hpp"
#include "actors/data/group_sink.hpp"
#include "apps/session/run_inputs.hpp"
#include "runtime/config/train_config.hpp"

namespace troupe::app {

struct CompanyPlan {
  config::TrainConfig config;
  actors::RunPlan run;
  std::string checkpoint;  // folder to load before the run; "" starts from the model
};

// Runs the whole plan. The error is that of the role that ended the run, by name.
core::Result<void> run_local_company(CompanyPlan plan, RunInputs inputs,
                                     std::unique_ptr<actors::GroupSink> sink,
                                     actors::RunListener& listener);

}  // namespace troupe::app
