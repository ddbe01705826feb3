// A child process that answers lines with lines: requests come on its standard input, replies go
// out on descriptor 3, so that text printed by the child cannot be taken for a reply. Bytes of a
// length that the line says may follow a line. The child
// leads a process group, dies with its owner, and gets resource limits and few environment
// variables (PATH, HOME, LANG, LC_ALL, TMPDIR, VIRTUAL_ENV). Used by one thread at a time; the
// child dies with the thread that started it. Bound: each call's deadline.
#pragma once

#include "runtime/core/child_process.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/socket.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors::reward {

class WorkerProcess {
 public:
  // `name` stands in errors: "reward worker".
  explicit WorkerProcess(std::string name = "reward worker") : name_(std::move(name)) {}
  const std::string& name() const noexcept { return name_; }
  ~WorkerProcess() { kill(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // What the child prints goes to our standard error, or into a stream that the owner takes.
  enum class Prints { kInherited, kTaken };
  core::Result<void> start(const std::vector<std::string>& command,
                           Prints prints = Prints::kInherited);
  bool running() const noexcept { return child_.pid() > 0; }

  // Errors: kDeadline, kClosed (the child ended; says how), kData (a reply line beyond
  // kJsonLine_bytes_max).
  core::Result<void> send_line(const std::string& line, core::Duration deadline);
  core::Result<std::string> read_line(core::Duration deadline);
  core::Result<void> send_bytes(std::string_view bytes, core::Duration deadline);
  core::Result<std::string> read_bytes(std::size_t count, core::Duration deadline);

  // The ends of the two connections, for an owner that reads and writes lines by itself.
  struct Streams {
    net::OwnedFd requests, replies;
    std::string read;     // what was read of the replies already
    net::OwnedFd prints;  // to read; only with Prints::kTaken
  };
  Streams take_streams();

  // Kills the whole process group by SIGKILL and reaps the child.
  void kill() noexcept;
  // Kills a child that has closed its connection; gives kClosed, saying how it ended.
  core::Failure ended();

 private:
  // Appends what can be read now to pending_; waits for it until `until`.
  core::Result<void> read_some(core::TimePoint until);

  const std::string name_;
  core::ChildProcess child_;
  net::OwnedFd in_;   // we write, the child's standard input
  net::OwnedFd out_;  // we read, the child's descriptor 3
  net::OwnedFd prints_;
  std::string pending_;
};

}  // namespace troupe::actors::reward
