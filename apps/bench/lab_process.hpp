// This very program in a process of its own, for benchmarks that start whole runs and the commands
// that change them: a group of processes with its output in a file, that dies with its owner, and
// waits that always end. Owned by the benchmark, on its thread.
#pragma once

#include "runtime/core/result.hpp"

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

// Polls until the condition holds; false at the limit.
bool holds_within(double limit_s, const std::function<bool()>& condition);

class LabProcess {
 public:
  LabProcess() = default;
  // Error: kResources.
  static core::Result<LabProcess> start(std::vector<std::string> arguments,
                                        const std::filesystem::path& log);
  LabProcess(LabProcess&& other) noexcept;
  LabProcess& operator=(LabProcess&& other) noexcept;
  ~LabProcess() { kill(); }

  // The exit status, 128 + signal for one that was killed; nothing when it still runs at the limit.
  std::optional<int> wait(double limit_s);
  bool running();
  void signal(int number);
  void kill();  // with all of its group, and waits for its end

  pid_t pid() const noexcept { return pid_; }
  std::string output() const;

 private:
  std::filesystem::path log_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// The command's output; error kPeerLost with that output when it fails or takes longer, after which
// it is killed.
core::Result<std::string> run_lab_command(std::vector<std::string> arguments,
                                          const std::filesystem::path& log,
                                          double limit_s);

// Of a process that goes on, from /proc. Seconds of processor time in user and system mode;
// resident MiB. 0 when it is gone.
double processor_seconds(pid_t pid);
double resident_mb(pid_t pid);

}  // namespace troupe::app
