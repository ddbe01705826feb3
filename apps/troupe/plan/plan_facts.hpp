// Reads what a plan is computed from: the configuration of a run, the shapes of its models, and the
// flags of `troupe plan`. Reads config.json files and nothing else; stateless.
#pragma once

#include "apps/troupe/plan/plan_flags.hpp"
#include "runtime/config/builder.hpp"
#include "runtime/core/result.hpp"
#include "runtime/plan/plan.hpp"

namespace troupe::app {

// `origins`: which keys were set. Errors: kConfig (a flag or key that makes no sense here, a device
// named twice), those of model::read_spec and model::trained_layout.
core::Result<plan::RunFacts> plan_facts(const config::TrainConfig& config,
                                        const config::Origins& origins,
                                        const PlanFlags& flags);

}  // namespace troupe::app
