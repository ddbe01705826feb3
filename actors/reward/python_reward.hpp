// A reward source that runs a user's Python function in a worker process (worker_process.hpp). The
// worker is killed with its children when it exceeds the deadline, and replaced after
// kRewardWorkerCalls_max calls. Used from the reward role's thread; a call blocks at most for its
// deadline, and for up to 60 s more when it has to start a worker.
#pragma once

#include "actors/limits.hpp"
#include "actors/reward/reward_source.hpp"

#include <filesystem>

namespace troupe::actors {

// Starts the worker once, to check that the file loads. Errors: kConfig naming the file, with the
// end of the traceback. The worker is replaced after `calls_max` calls.
core::Result<std::unique_ptr<RewardSource>> make_python_reward(
    std::filesystem::path file, std::uint64_t calls_max = limits::kRewardWorkerCalls_max);

}  // namespace troupe::actors
