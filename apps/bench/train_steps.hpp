// Timed steps of the trainers that `troupe bench train` measures. On the caller's thread and the
// given team; memory: the trainers and their samples.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/trainer.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct TrainJob {
  std::string model;
  std::string objective = "grpo";
  std::int64_t prompts = 0, samples = 0;  // 0: as the objective has it
  std::int64_t prompt_tokens = 0, new_tokens = 0;
  std::int64_t micro_tokens_max = 2048;
  std::string device = "cpu";
  std::int64_t threads = 0;
};

// What one step costs this process. Other work on the machine disturbs processor time the least.
struct StepCost {
  double wall_s = 0;
  double cpu_s = 0;              // user and system, all threads
  std::int64_t page_faults = 0;  // minor ones: memory touched for the first time
};

inline constexpr int kTimedSteps = 3;  // after a warm-up step

struct TrainFigures {
  StepCost cost;                       // medians
  std::int64_t first_page_faults = 0;  // of the warm-up step
  double flops = 0;                    // of one step's products
  double fma_gflops = 0;               // what the team could do, before and after: the better one
  double peak_mb = 0;                  // largest proportional set size after a step
  double rss_mb = 0;                   // largest resident memory of the process so far
  std::int64_t tokens = 0, rows = 0, micro_batches = 0;
};

// Updates of learn::PolicyTrainer as `settings` say; leaves its random groups in `groups`. For PPO
// a step is values, advantages and an update of policy and critic each.
core::Result<TrainFigures> time_policy(const TrainJob& job,
                                       const learn::TrainerSettings& settings,
                                       std::vector<experience::Group>& groups,
                                       core::TeamRunner& team);

// Steps of learn::SupervisedTrainer over random sequences (sft) or pairs (dpo, rm). Every step
// takes new rows, because the trainer caches the reference's log-probs of a row and each step must
// include that cost. `tokens` counts those of all sequences and answers, prompts once for each
// answer, as trainers that do not share prompts do.
core::Result<TrainFigures> time_supervised(const TrainJob& job, core::TeamRunner& team);

}  // namespace troupe::app
