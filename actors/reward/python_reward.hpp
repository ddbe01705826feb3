// A reward that is a user's Python function, run in a pool of worker processes (python_worker.hpp).
// A plain function scores one batch at a time in each worker, an async one many. A worker that
// exceeds the deadline of a batch is killed with its children, or told to cancel it if it is async
// and answers others; one that has had kRewardWorkerCalls_max batches is replaced. Batches that
// lost their worker together are scored again in smaller companies, so that one that kills its
// worker is found and the others are kept.
#pragma once

#include "actors/limits.hpp"
#include "actors/reward/reward_calls.hpp"

#include <filesystem>

namespace troupe::actors {

struct PythonRewardOptions {
  std::filesystem::path file;
  std::size_t workers = 1;
  std::uint64_t calls_max = limits::kRewardWorkerCalls_max;  // of a worker, then it is replaced
};

// Starts the first worker, to check that the file loads; blocks for up to 60 s. Errors: kConfig
// naming the file, with the end of the traceback.
core::Result<std::unique_ptr<RewardCalls>> make_python_reward(PythonRewardOptions options);

}  // namespace troupe::actors
