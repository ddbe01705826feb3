// Timed updates of learn::PolicyTrainer over random groups, for PPO with a critic, and what all
// objectives of `bench train` report. Runs on the caller's thread and the given team; memory: the
// trainers and the groups.
#pragma once

#include "apps/bench/step_meter.hpp"
#include "apps/bench/train_job.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::app {

inline constexpr int kTimedSteps = 3;  // after one that is not counted

struct TrainFigures {
  StepCost cost;                       // medians
  std::int64_t first_page_faults = 0;  // of the step that is not counted
  double flops = 0;                    // of one step's products
  double fma_gflops = 0;               // what the team could do, before and after: the better one
  double peak_mb = 0;                  // largest proportional set size after a step
  double rss_mb = 0;                   // largest resident memory of the process so far
  std::int64_t tokens = 0, rows = 0, micro_batches = 0;
};

// Calls `before`, which is not timed, and `step` with 0, 1, ... kTimedSteps, and fills in all but
// the counts.
using StepCall = std::function<core::Result<void>(int)>;
core::Result<TrainFigures> time_steps(core::TeamRunner& team,
                                      const StepCall& before,
                                      const StepCall& step);

// As `settings` say; leaves the random groups in `groups`. For PPO a step is values, advantages and
// an update of policy and critic each.
core::Result<TrainFigures> time_policy(const TrainJob& job,
                                       const learn::TrainerSettings& settings,
                                       std::vector<experience::Group>& groups,
                                       core::TeamRunner& team);

}  // namespace troupe::app
