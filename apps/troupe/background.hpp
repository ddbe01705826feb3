// Runs work that outlives its command, in a child process without a terminal, with its output in a
// log file. The command can return once the work says that it runs. Call it on the main thread,
// before the process has other threads.
#pragma once

#include "runtime/core/result.hpp"

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

namespace troupe::app {

// The work calls this once it runs, with a message for the user; later calls do nothing.
using SayRunning = std::function<void(const std::string& words)>;

struct BackgroundStart {
  pid_t pid = 0;
  std::string words;  // output of the work
};

// Starts `work` in a child process, with its output appended to `log` (created with mode 0600)
// within the bounds of bounded_log.hpp, and
// waits until it says that it runs. When `work` returns, the child ends with the exit status of the
// result. Errors: kResources: no child process or no log; the error of `work` if it failed before
// it ran; kInternal if it ended without a word; kInterrupted: a signal came first, and the child
// was told to end.
core::Result<BackgroundStart> start_in_background(
    const std::filesystem::path& log,
    const std::function<core::Result<void>(const SayRunning&)>& work);

}  // namespace troupe::app
