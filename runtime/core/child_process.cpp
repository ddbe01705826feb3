#include "runtime/core/child_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace troupe::core {
namespace {

std::vector<char*> exec_pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& text : words)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Moves each descriptor to the number that the child expects, and closes all above the highest.
bool place_descriptors(std::vector<ChildSpec::Descriptor>& given) {
  int last = 2;
  for (const auto& one : given)
    last = std::max(last, one.theirs);
  for (auto& one : given) {  // first above all targets, so that none overwrites another
    one.ours = ::fcntl(one.ours, F_DUPFD, last + 1);
    if (one.ours < 0) return false;
  }
  for (const auto& one : given) {
    if (::dup2(one.ours, one.theirs) < 0) return false;
  }
  return ::close_range(static_cast<unsigned>(last) + 1, ~0u, 0) == 0;
}

[[noreturn]] void become_child(ChildSpec& spec, pid_t parent, char** argv, char** envp) {
  ::setpgid(0, 0);
  if (!spec.outlives_parent) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool placed = spec.network < 0 || ::setns(spec.network, CLONE_NEWNET) == 0;
  // /proc/self/exe stays valid when the descriptors are closed, because it is not one of them.
  if (placed && ::getppid() == parent && place_descriptors(spec.descriptors)) {
    for (const auto& [resource, value] : spec.limits) {
      const rlimit limit{value, value};
      ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
    }
    if (spec.this_program) {
      ::execve("/proc/self/exe", argv, envp);
    } else {
      ::execvpe(argv[0], argv, envp);
    }
  }
  ::_exit(127);
}

}  // namespace

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    const auto replaces = [&](const std::string& change) { return change.starts_with(name); };
    if (std::ranges::none_of(changes, replaces)) result.push_back(text);
  }
  return result;
}

std::string how_it_ended(int wait_status) {
  if (!WIFSIGNALED(wait_status))
    return "ended with status " + std::to_string(WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  return "was ended by signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
}

Result<ChildProcess> ChildProcess::start(const std::string& what, ChildSpec spec) {
  std::vector<std::string> environment =
      spec.environment ? std::move(*spec.environment) : merged_environment({});
  auto argv = exec_pointers(spec.words);
  auto envp = exec_pointers(environment);
  const pid_t parent = ::getpid();
  ChildProcess child;
  child.pid_ = ::fork();
  if (child.pid_ == 0) become_child(spec, parent, argv.data(), envp.data());
  if (child.pid_ < 0) {
    child.pid_ = 0;
    const int why = errno;  // EAGAIN, ENOMEM: others may end
    return fail(why == EAGAIN || why == ENOMEM ? ErrorCode::kNoRoom : ErrorCode::kResources,
                "cannot start " + what + ": " + std::strerror(why));
  }
  ::setpgid(child.pid_, child.pid_);  // parent and child both do it, so neither has to wait
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), status_(other.status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  return *this;
}

bool ChildProcess::running() {
  if (pid_ <= 0 || status_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = status;
  return false;
}

std::optional<int> ChildProcess::wait(Duration limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (running() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return status_;
}

int ChildProcess::wait() {
  while (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_) status_ = status;
  }
  return *status_;
}

void ChildProcess::signal(int number) {
  if (running()) ::kill(pid_, number);
}

void ChildProcess::kill() noexcept {
  if (pid_ <= 0) return;
  const bool there = running();
  ::kill(-pid_, SIGKILL);  // also what is left of the group
  if (there) {
    ::kill(pid_, SIGKILL);  // it may not lead its group yet
    wait();
  }
  pid_ = 0;
}

}  // namespace troupe::core
