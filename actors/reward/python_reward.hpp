// A user's Python reward function in a process of its own. The worker inherits no descriptors and no
// environment beyond PATH, HOME, LANG and what the function's libraries need to start; it is killed
// with its children when it exceeds the deadline, and replaced after kRewardWorkerCalls_max calls.
// Used from the reward role's thread; calls block at most for the deadline.
#pragma once

#include "actors/limits.hpp"
#include "actors/reward/reward_source.hpp"

#include <filesystem>

namespace troupe::actors {

// Starts the worker once to see that the file loads. Errors: kConfig naming the file and the
// interpreter, with the end of the traceback. `calls_max`: then the worker is replaced.
core::Result<std::unique_ptr<RewardSource>> make_python_reward(
    std::filesystem::path file, std::uint64_t calls_max = limits::kRewardWorkerCalls_max);

}  // namespace troupe::actors
