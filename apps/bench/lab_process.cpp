// fork, exec, waitpid and /proc.
#include "apps/bench/lab_process.hpp"

#include "apps/cli/exec_words.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace troupe::app {
namespace {

// Only async-signal-safe calls: runs between fork and exec.
[[noreturn]] void become(int log, pid_t parent, char** argv) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent && ::dup2(log, 1) == 1 && ::dup2(log, 2) == 2) {
    ::execv("/proc/self/exe", argv);
  }
  ::_exit(127);
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

bool holds_within(double limit_s, const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(limit_s);
  while (!condition()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

core::Result<LabProcess> LabProcess::start(std::vector<std::string> arguments,
                                           const std::filesystem::path& log) {
  arguments.insert(arguments.begin(), "troupe");
  std::vector<char*> argv = exec_pointers(arguments);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) {
    return core::fail(core::ErrorCode::kResources,
                      "cannot write " + log.string() + ": " + std::strerror(errno));
  }
  LabProcess process;
  process.log_ = log;
  const pid_t parent = ::getpid();
  process.pid_ = ::fork();
  if (process.pid_ == 0) become(out, parent, argv.data());
  ::close(out);
  if (process.pid_ > 0) return process;
  return core::fail(core::ErrorCode::kResources,
                    std::string("cannot start a process: ") + std::strerror(errno));
}

LabProcess::LabProcess(LabProcess&& other) noexcept
    : log_(std::move(other.log_)), pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

LabProcess& LabProcess::operator=(LabProcess&& other) noexcept {
  std::swap(log_, other.log_);
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  return *this;
}

bool LabProcess::running() {
  if (pid_ <= 0 || status_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

std::optional<int> LabProcess::wait(double limit_s) {
  holds_within(limit_s, [this] { return !running(); });
  return status_;
}

void LabProcess::signal(int number) {
  if (running()) ::kill(pid_, number);
}

void LabProcess::kill() {
  if (pid_ <= 0) return;
  const bool there = running();
  ::kill(-pid_, SIGKILL);
  if (there) {
    ::kill(pid_, SIGKILL);  // it may not lead its group yet
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
}

std::string LabProcess::output() const {
  return read_file(log_);
}

core::Result<std::string> run_lab_command(std::vector<std::string> arguments,
                                          const std::filesystem::path& log,
                                          double limit_s) {
  const std::string what = "troupe " + arguments.front();
  TROUPE_TRY_ASSIGN(process, LabProcess::start(std::move(arguments), log));
  const auto status = process.wait(limit_s);
  process.kill();
  if (status == 0) return process.output();
  const std::string how = status ? "ended with status " + std::to_string(*status)
                                 : "did not end within " + std::to_string(limit_s) + " s";
  return core::fail(core::ErrorCode::kPeerLost, what + " " + how + ": " + process.output());
}

double processor_seconds(pid_t pid) {
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = text.rfind(')');
  if (name_end == text.npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i)
    fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double resident_mb(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

}  // namespace troupe::app
