// A child process that answers lines with lines: requests on its standard input, replies on a pipe
// of its own (descriptor 3), so that text printed by the child cannot be taken for a reply. The
// child leads a process group, gets a bare environment and resource limits, and dies with its
// owner. Owned by one thread. Bounded by the deadlines that each call is given.
#pragma once

#include "runtime/core/child_process.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/socket.hpp"

#include <string>
#include <vector>

namespace troupe::actors {

class WorkerProcess {
 public:
  WorkerProcess() = default;
  ~WorkerProcess() { kill(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  core::Result<void> start(const std::vector<std::string>& command);
  bool running() const noexcept { return child_.pid() > 0; }

  // Errors: kDeadline, kClosed (the child ended; says how), kData (a reply beyond the bound).
  core::Result<void> send_line(const std::string& line, core::Duration deadline);
  core::Result<std::string> read_line(core::Duration deadline);

  // SIGKILL to the whole process group, then reap.
  void kill() noexcept;

 private:
  core::Failure ended();

  core::ChildProcess child_;
  net::OwnedFd in_;   // we write, the child's standard input
  net::OwnedFd out_;  // we read, the child's descriptor 3
  std::string pending_;
};

}  // namespace troupe::actors
