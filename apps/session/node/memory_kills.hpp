// Whether the kernel has killed a process of this host for lack of memory: what the counters of its
// control group and of the machine say. Watches one process, used by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::session {

class MemoryKills {
 public:
  // `root`: where the control groups are mounted. `machine`: the machine's counters.
  explicit MemoryKills(pid_t pid,
                       std::filesystem::path root = "/sys/fs/cgroup",
                       std::filesystem::path machine = "/proc/vmstat");

  // To be called now and then while the process lives: it may be moved to another group.
  void look();

  struct Verdict {
    bool memory = false;  // it lacked, or may have lacked, memory
    std::string text;     // of the cause, as it follows on "was ended by signal 9"
  };
  // Once the process has been ended by SIGKILL, and not by this one.
  Verdict of_killed() const;

 private:
  pid_t pid_;
  std::filesystem::path root_, machine_;
  std::string groups_;           // counters of the process's group, from the kernel
  std::filesystem::path group_;  // the file with the counter of its group; empty: there is none
  std::optional<std::uint64_t> in_group_, on_machine_;  // before
};

}  // namespace troupe::session
