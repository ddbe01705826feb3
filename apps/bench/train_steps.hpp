// Runs and times the steps of the trainers that `troupe bench train` measures. On the caller's
// thread and the given team. Memory: the trainers and their samples.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/rl/trainer.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

struct TrainJob {
  std::string model;
  std::string objective = "grpo";
  std::int64_t prompts = 0, samples = 0;  // 0: a default for the objective
  std::int64_t prompt_tokens = 0, new_tokens = 0;
  std::int64_t shortest = 0;  // lengths go evenly from here to new_tokens; 0: all have new_tokens
  std::int64_t micro_tokens_max = 2048;
  std::string dtype = "f32";   // of the forward pass's weights
  std::int64_t lora_rank = 0;  // 0: all weights are trained
  std::int64_t lanes = 1;      // as train.lanes
  std::string device = "cpu";
  std::int64_t threads = 0;  // of each rank
  std::int64_t ranks = 1, zero_stage = 0;
  std::int64_t rank = 0;  // what this process is
  std::string folder;     // where the ranks meet
  learn::Ranks gang;      // set by TrainRanks
};

// What one step costs this process. Other load on the machine disturbs cpu_s less than wall_s.
struct StepCost {
  double wall_s = 0;
  double cpu_s = 0;              // user and system, all threads
  std::int64_t page_faults = 0;  // minor ones: memory touched for the first time
};

inline constexpr int kTimedSteps = 3;  // after a warm-up step

struct TrainFigures {
  StepCost cost;                       // medians
  std::int64_t first_page_faults = 0;  // of the warm-up step
  double flops = 0;                    // of one step's matrix products
  double fma_gflops = 0;               // the team's peak, the better of before and after
  double peak_mb = 0;                  // largest proportional set size after a step
  double rss_mb = 0;                   // largest resident memory of the process
  std::int64_t tokens = 0, rows = 0, micro_batches = 0;
  std::int64_t trained = 0;    // numbers whose gradient is computed
  std::int64_t embedding = 0;  // numbers of the embedding
  double sent_bytes = 0;       // from this rank to others in a step; the median
};

// The dtype and the adapters of a job, in the optimiser's settings. Error kConfig: no trainer
// computes in that dtype on that device.
core::Result<learn::OptimSettings> train_optim(const TrainJob& job);

// Times updates of learn::PolicyTrainer with `settings` on random groups, which it leaves in
// `groups`. For ppo a step is: values, advantages, an update of the critic and one of the policy.
core::Result<TrainFigures> time_policy(const TrainJob& job,
                                       const learn::TrainerSettings& settings,
                                       std::vector<experience::Group>& groups,
                                       core::TeamRunner& team);

// Times steps of learn::SupervisedTrainer over random sequences (sft) or pairs (dpo, rm): of each
// prompt's `samples` answers the first against every other. Every step takes new rows, because the
// trainer caches the reference's log-probs of a row and each step must include that cost. `tokens`
// counts all sequences and answers, and a prompt once for each answer, as trainers that do not
// share prompts do.
core::Result<TrainFigures> time_supervised(const TrainJob& job, core::TeamRunner& team);

}  // namespace troupe::bench
