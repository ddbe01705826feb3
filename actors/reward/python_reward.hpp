// A user's Python reward function in a process of its own. The worker inherits no descriptors and no
// environment beyond PATH, HOME, LANG and what the function's libraries need to start; it is killed
// with its children when it exceeds the deadline, and replaced after kRewardWorkerCalls_max calls.
// Used from the reward role's thread; calls block at most for the deadline.
#pragma once

#include <filesystem>

#include "actors/reward/reward_source.hpp"

namespace troupe::actors {

struct PythonRewardOptions {
  std::filesystem::path file;          // the user's .py
  std::string interpreter = "python3";  // looked up in PATH
  core::Duration start_deadline = std::chrono::seconds(60);  // imports may be slow
  std::uint64_t calls_max = 0;         // 0 = limits::kRewardWorkerCalls_max
};

// Starts the worker once to see that the file loads. Errors: kConfig naming the file and the
// interpreter, with the end of the traceback.
core::Result<std::unique_ptr<RewardSource>> make_python_reward(PythonRewardOptions options);

}  // namespace troupe::actors
