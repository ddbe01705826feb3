// Runs another program, or this one again, as a child process. The child leads a process group, is
// killed when its parent thread ends (unless told otherwise), and inherits only the standard
// streams and the given descriptors. Used only by the thread that starts it; the user bounds how
// many children there are.
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
  std::vector<std::string> words;  // the command line; the first word is looked up on the PATH
  bool this_program = false;       // run this program; the first word is then only its argv[0]
  std::optional<std::vector<std::string>> environment;  // NAME=value, all of them; nullopt: ours
  // A descriptor's number here and in the child. Numbers above 2 should be consecutive from 3: the
  // child inherits what is open in a gap.
  struct Descriptor {
    int ours, theirs;
  };
  std::vector<Descriptor> descriptors;  // in addition to the standard streams, or in their place
  std::vector<std::pair<int, rlim_t>> limits;  // RLIMIT_*; the value for soft and hard limit
  bool outlives_parent = false;
  int network = -1;  // descriptor of a network namespace to run in
};

// Our environment, in which `changes` (NAME=value) replace entries or add new ones.
std::vector<std::string> merged_environment(const std::vector<std::string>& changes);

// Describes a status of wait(2): "ended with status 3", "was ended by signal 9 (Killed)".
std::string how_it_ended(int wait_status);

class ChildProcess {
 public:
  ChildProcess() = default;
  // `what` names the child in errors ("a reward worker"). Error: kResources. If the program cannot
  // be run, the child ends with status 127.
  static Result<ChildProcess> start(const std::string& what, ChildSpec spec);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { kill(); }

  pid_t pid() const noexcept { return pid_; }  // 0 if none was started, and after kill()
  bool running();
  // Waits for the end and returns the status of wait(2); nullopt if it still runs after `limit`.
  std::optional<int> wait(Duration limit);
  int wait();               // without a limit
  void signal(int number);  // to the process, not its group
  // Sends SIGKILL to the whole group, then reaps the process. Idempotent.
  void kill() noexcept;

 private:
  pid_t pid_ = 0;
  std::optional<int> status_;
};

}  // namespace troupe::core
