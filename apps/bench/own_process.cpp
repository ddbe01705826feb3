// fork and exec of /proc/self/exe with a pipe for its output.
#include "apps/bench/own_process.hpp"

#include "apps/cli/exec_words.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::app {
namespace {

using core::ErrorCode;

core::Failure cannot_start() {
  return core::fail(ErrorCode::kResources,
                    std::string("cannot start a second process: ") + std::strerror(errno));
}

// Only async-signal-safe calls: runs between fork and exec.
[[noreturn]] void become_child(int output, pid_t parent, char** argv, char** envp) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent && ::dup2(output, 1) == 1) ::execve("/proc/self/exe", argv, envp);
  ::_exit(127);
}

std::string read_all(int from) {
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t n = ::read(from, chunk, sizeof chunk);
    if (n > 0 && text.size() < kOwnProcess_output_max) {
      text.append(chunk, static_cast<std::size_t>(n));
    } else if (n == 0 || (n < 0 && errno != EINTR)) {
      return text;
    }
  }
}

}  // namespace

core::Result<std::string> run_own_process(const std::vector<std::string>& arguments,
                                          const std::vector<std::string>& environment) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), "troupe");
  std::vector<std::string> variables = merged_environment(environment);
  auto argv = exec_pointers(words);
  auto envp = exec_pointers(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot_start();
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become_child(ends[1], parent, argv.data(), envp.data());
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return cannot_start();
  }
  std::string output = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  const std::string how = WIFSIGNALED(status)
                              ? std::string("was ended by signal ") + strsignal(WTERMSIG(status))
                              : "ended with status " + std::to_string(WEXITSTATUS(status));
  return core::fail(ErrorCode::kPeerLost, "the second process (troupe " + arguments.front() + ") " +
                                              how + "; its message is above");
}

}  // namespace troupe::app
