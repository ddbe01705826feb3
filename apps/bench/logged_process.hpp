// Runs a program in the background with its output in a file; every wait has a limit. For
// benchmarks and tests that start whole runs and commands on them. The process is killed with its
// owner, on whose thread all calls are made.
#pragma once

#include "runtime/core/child_process.hpp"
#include "runtime/core/result.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

// Polls until the condition holds; false at the limit.
bool holds_within(double limit_s, const std::function<bool()>& condition);

class LoggedProcess {
 public:
  LoggedProcess() = default;
  // `program`: a path, or "" for this very program. Error: kResources.
  static core::Result<LoggedProcess> start(const std::string& program,
                                           std::vector<std::string> arguments,
                                           const std::filesystem::path& log,
                                           int network = -1);

  // The exit status, 128 + signal for one that was killed; nothing when it still runs at the limit.
  std::optional<int> wait(double limit_s);
  bool running() { return child_.running(); }
  void signal(int number) { child_.signal(number); }
  void kill() { child_.kill(); }  // kills its process group and waits for its end

  pid_t pid() const noexcept { return child_.pid(); }
  std::string output() const;

 private:
  std::filesystem::path log_;
  core::ChildProcess child_;
};

// The command's output; error kPeerLost with that output when it fails or takes longer, after which
// it is killed.
core::Result<std::string> run_command_logged(std::vector<std::string> arguments,
                                             const std::filesystem::path& log,
                                             double limit_s);

// Figures of a running process from /proc; 0 when it is gone. Seconds of processor time in user and
// system mode; a field of its status in MiB, by default its resident memory.
double processor_seconds(pid_t pid);
double memory_mb(pid_t pid, const std::string& field = "VmRSS:");
// Proportional set size of this process now, MiB: pages shared with others count by their share.
double pss_mb();
// The same without mapped files (program and libraries), whose share changes when other processes
// that map them come and go.
double pss_own_mb();

}  // namespace troupe::app
