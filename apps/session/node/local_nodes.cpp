// fork and exec of /proc/self/exe; ends are collected without blocking.
#include "apps/session/node/local_nodes.hpp"

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

// Only async-signal-safe calls: runs between fork and exec.
[[noreturn]] void become_node(int log, int nothing, pid_t parent, char** argv, char** envp) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool wired = ::dup2(nothing, 0) == 0 && ::dup2(log, 1) == 1 && ::dup2(log, 2) == 2;
  if (::getppid() == parent && wired) {
    ::close_range(3, ~0u, 0);
    ::execve("/proc/self/exe", argv, envp);
  }
  ::_exit(127);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")" +
           (WTERMSIG(status) == SIGKILL ? ", by hand or for want of memory" : "");
  }
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

LocalNodes::LocalNodes(std::string socket, std::filesystem::path log_folder)
    : socket_(std::move(socket)), log_folder_(std::move(log_folder)) {}

LocalNodes::~LocalNodes() {
  for (const auto& [node, pid] : pids_)
    ::kill(pid, SIGKILL);
  for (const auto& [node, pid] : pids_) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

std::filesystem::path LocalNodes::log_of(const std::string& node) const {
  return log_folder_ / (node.substr(node.find('/') + 1) + ".log");
}

core::Result<void> LocalNodes::start(const std::string& node,
                                     const std::vector<std::string>& kinds,
                                     const std::string& pass) {
  std::error_code error;
  std::filesystem::create_directories(log_folder_, error);
  const std::filesystem::path log_file = log_of(node);
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log < 0 || nothing < 0) {
    const std::string why = std::strerror(errno);
    if (log >= 0) ::close(log);
    return core::fail(ErrorCode::kResources, "cannot write " + log_file.string() + ": " + why);
  }
  std::string offered;
  for (const std::string& kind : kinds)
    offered += (offered.empty() ? "" : ",") + kind;
  std::vector<std::string> words = {"troupe",  "node",   "--local",
                                    socket_,   "--name", node.substr(node.find('/') + 1),
                                    "--roles", offered};
  std::vector<std::string> variables = merged_environment({"TROUPE_NODE_PASS=" + pass});
  auto argv = exec_pointers(words);
  auto envp = exec_pointers(variables);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become_node(log, nothing, parent, argv.data(), envp.data());
  const int code = errno;
  ::close(log);
  ::close(nothing);
  if (child < 0) {
    return core::fail(ErrorCode::kResources,
                      "cannot start a process for " + node + ": " + std::strerror(code));
  }
  pids_[node] = child;
  return {};
}

void LocalNodes::kill(const std::string& node) {
  if (const int found = pid(node); found > 0) ::kill(found, SIGKILL);
}

std::vector<LocalNodes::Exit> LocalNodes::exits() {
  std::vector<Exit> ended;
  for (auto place = pids_.begin(); place != pids_.end();) {
    int status = 0;
    if (::waitpid(place->second, &status, WNOHANG) == place->second) {
      ended.push_back({place->first, how_it_ended(status)});
      place = pids_.erase(place);
    } else {
      ++place;
    }
  }
  return ended;
}

int LocalNodes::pid(const std::string& node) const {
  const auto found = pids_.find(node);
  return found == pids_.end() ? 0 : found->second;
}

}  // namespace troupe::app
