// Runs work that outlives its command, in a child process without a terminal whose output goes to a
// log file. The command returns once the work says that it runs. Called on the main thread, before
// the process has other threads.
#pragma once

#include "runtime/core/result.hpp"

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

namespace troupe::app {

// The work calls it once when it runs, with a message for the user.
using SayRunning = std::function<void(const std::string& words)>;

struct BackgroundStart {
  pid_t pid = 0;
  std::string words;  // what the work said
};

// Starts `work` with its output appended to `log` (made with mode 0600). Its process ends when
// `work` returns, with the exit status of its result. Errors: kResources when there can be no such
// process or log; the error with which `work` ended before it ran; kInterrupted: a signal came
// first, and the process was told to end.
core::Result<BackgroundStart> start_in_background(
    const std::filesystem::path& log,
    const std::function<core::Result<void>(const SayRunning&)>& work);

}  // namespace troupe::app
