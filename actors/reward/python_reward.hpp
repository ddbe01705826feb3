// A reward that is a user's Python function, run in a pool of worker processes (python_worker.hpp).
// A plain function scores one batch at a time in each worker, an async one many. A worker that
// exceeds the deadline of a batch is killed with its children, or told to cancel it if it is async
// and answers others; one that has had kRewardWorkerCalls_max batches is replaced. Batches that
// lost their worker together are scored again in smaller companies, so that one that kills its
// worker is found and the others are kept.
#pragma once

#include "actors/reward/limits.hpp"
#include "actors/reward/reward_calls.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::actors::reward {

// Which program the workers run, and how many.
struct WorkerPool {
  std::string name;                  // of the reward
  std::string where;                 // in errors: "reward function FILE"
  std::vector<std::string> command;  // python_worker.py with its arguments
  std::size_t workers = 1;
  std::uint64_t calls_max = limits::kRewardWorkerCalls_max;  // calls of one worker process
  // A batch has at least this long for each of its samples, whatever its deadline.
  core::Duration sample_time{};
};

struct PythonRewardOptions {
#define KEYS "actors/reward/reward_keys.def"
#define PART python
#include "runtime/config/fill.def"
  std::uint64_t calls_max = limits::kRewardWorkerCalls_max;
};

// Starts the first worker, to check that the file loads; blocks for up to 60 s. Errors: kConfig
// naming the file, with the end of the traceback.
core::Result<std::unique_ptr<RewardCalls>> make_python_reward(PythonRewardOptions options);

// Like make_python_reward, for a program of our own.
core::Result<std::unique_ptr<RewardCalls>> make_worker_reward(WorkerPool pool);

}  // namespace troupe::actors::reward
