// Another program, or this one again, in a process of its own: it leads a group, dies with whoever
// started it, and inherits nothing but standard streams and the descriptors that it is given. Owned
// by one thread: the child ends when that thread does. Bounded by its owner.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::core {

struct ChildSpec {
  std::vector<std::string> words;  // the command line; its first word is looked up on the PATH
  bool this_program = false;       // run this very program; the first word is only its name
  std::optional<std::vector<std::string>> environment;  // NAME=value, all of it; none: as ours
  struct Descriptor {
    int ours, theirs;
  };
  std::vector<Descriptor> descriptors;  // beside the standard streams, or in their place
  std::vector<std::pair<int, rlim_t>> limits;  // RLIMIT_* and its value
  int network = -1;                            // descriptor of a network namespace to run in
};

// Our environment, where `changes` (NAME=value) replace or join what is there.
std::vector<std::string> merged_environment(const std::vector<std::string>& changes);

// Of a status that wait(2) gave: "ended with status 3", "was ended by signal 9 (Killed)".
std::string how_it_ended(int wait_status);

class ChildProcess {
 public:
  ChildProcess() = default;
  // Error: kResources, with `what` it is ("a reward worker"). A program that is not found ends with
  // status 127.
  static Result<ChildProcess> start(const std::string& what, ChildSpec spec);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { kill(); }

  pid_t pid() const noexcept { return pid_; }  // 0 when nothing was started
  bool running();
  // Waits for the end. The status of wait(2); nothing when it still runs after `limit`.
  std::optional<int> wait(Duration limit);
  int wait();
  void signal(int number);  // to the process alone
  // SIGKILL to the whole group, then collects the process. Idempotent.
  void kill() noexcept;

 private:
  pid_t pid_ = 0;
  std::optional<int> status_;
};

}  // namespace troupe::core
