// Runs a program as a child process with its output in a file; every wait has a limit. For
// benchmarks and tests that start whole runs and commands on them. The destructor kills the
// process. Owned by one thread.
#pragma once

#include "runtime/core/child_process.hpp"
#include "runtime/core/result.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::bench {

// Polls every 5 ms until the condition holds; false if it does not hold within `limit_s` seconds.
bool holds_within(double limit_s, const std::function<bool()>& condition);

class LoggedProcess {
 public:
  LoggedProcess() = default;
  // `program`: a path, or "" for the `troupe` next to this one. `network`: descriptor of a network
  // namespace to run in; -1: ours. Error: kResources.
  static core::Result<LoggedProcess> start(const std::string& program,
                                           std::vector<std::string> arguments,
                                           const std::filesystem::path& log,
                                           int network = -1);

  // Waits for the end. The exit status, or 128 + the signal that killed it; nullopt if it still
  // runs after `limit_s` seconds.
  std::optional<int> wait(double limit_s);
  bool running() { return child_.running(); }
  void signal(int number) { child_.signal(number); }
  void kill() { child_.kill(); }  // kills the process group and waits for the process

  pid_t pid() const noexcept { return child_.pid(); }
  std::string output() const;

 private:
  std::filesystem::path log_;
  core::ChildProcess child_;
};

// Runs `troupe ARGUMENTS` and returns its output. Error kPeerLost, with the output: the command
// failed, or ran longer than `limit_s` seconds and was killed.
core::Result<std::string> run_command_logged(std::vector<std::string> arguments,
                                             const std::filesystem::path& log,
                                             double limit_s);

// Seconds of processor time that the process has used in user and system mode; 0 when it is gone.
double processor_seconds(pid_t pid);
// A field of /proc/PID/status in MiB, by default the resident memory; 0 when the process is gone.
double memory_mb(pid_t pid, const std::string& field = "VmRSS:");
// Proportional set size of this process in MiB: a page that n processes share counts 1/n.
double pss_mb();
// pss_mb without mapped files (program and libraries), whose share changes when other processes
// start or end.
double pss_own_mb();

}  // namespace troupe::bench
