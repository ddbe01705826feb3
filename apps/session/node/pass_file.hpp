// The files in RUN/nodes through which a head and the node processes of its own host find each
// other: NAME.pass, which the head writes, says where the company is and holds the node's pass;
// NAME.pid, which the node keeps locked while it lives, names its process. A node whose head
// is gone reads NAME.pass again until the next head has written it. Used on one thread.
#pragma once

#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::session {

struct CompanyPass {
  std::string socket;  // of the company
  std::string pass;
};

// Replaces the file; readable by this user alone. Errors: the disk's.
core::Result<void> write_pass(const std::filesystem::path& file, const CompanyPass& pass);
// Error kNotFound: there is no such file, or it is damaged.
core::Result<CompanyPass> read_pass(const std::filesystem::path& file);

// Locks the file and writes this process's id into it. The lock lasts as long as the descriptor.
// Error kInvalidArgument: another process holds it.
core::Result<core::OwnedFd> hold_pid_file(const std::filesystem::path& file);
// Whether the held file still lies there: not so when its run folder was moved or removed.
bool lies_there(const core::OwnedFd& held, const std::filesystem::path& file);

// A process that is no child of this one.
class OtherProcess {
 public:
  // The process that holds the file; nothing when there is none.
  static std::optional<OtherProcess> holder_of(const std::filesystem::path& file);

  pid_t pid() const noexcept { return pid_; }
  bool running() const;
  void kill() const noexcept;  // SIGKILL, to its group

 private:
  OtherProcess(pid_t pid, core::OwnedFd descriptor)
      : pid_(pid), descriptor_(std::move(descriptor)) {}
  pid_t pid_;
  core::OwnedFd descriptor_;
};

}  // namespace troupe::session
