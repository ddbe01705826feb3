#include "apps/bench/logged_process.hpp"

#include "apps/cli/process_stat.hpp"
#include "runtime/core/program_files.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace troupe::bench {
namespace {

// The value of a line "FIELD 123 kB"; 0 when there is none.
double field_mb(const std::string& file, const std::string& field) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size())) / 1024;
  }
  return 0;
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

core::Result<LoggedProcess> LoggedProcess::start(const std::string& program,
                                                 std::vector<std::string> arguments,
                                                 const std::filesystem::path& log,
                                                 int network) {
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) {
    return core::fail(core::ErrorCode::kResources,
                      "cannot write " + log.string() + ": " + std::strerror(errno));
  }
  core::ChildSpec spec;
  spec.words = std::move(arguments);
  spec.words.insert(spec.words.begin(),
                    program.empty() ? core::program_file("troupe").string() : program);
  spec.descriptors = {{out, STDOUT_FILENO}, {out, STDERR_FILENO}};
  spec.network = network;
  auto child = core::ChildProcess::start("a process", std::move(spec));
  ::close(out);
  if (!child) return child.failure();
  LoggedProcess process;
  process.log_ = log;
  process.child_ = std::move(*child);
  return process;
}

std::optional<int> LoggedProcess::wait(double limit_s) {
  const auto status = child_.wait(
      std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(limit_s)));
  if (!status) return status;
  return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
}

std::string LoggedProcess::output() const {
  return (std::ostringstream() << std::ifstream(log_).rdbuf()).str();
}

core::Result<std::string> run_command_logged(std::vector<std::string> arguments,
                                             const std::filesystem::path& log,
                                             double limit_s) {
  const std::string what = "troupe " + arguments.front();
  TROUPE_TRY_ASSIGN(process, LoggedProcess::start("", std::move(arguments), log));
  const auto status = process.wait(limit_s);
  process.kill();
  if (status == 0) return process.output();
  const std::string how = status ? "ended with status " + std::to_string(*status)
                                 : "did not end within " + std::to_string(limit_s) + " s";
  return core::fail(core::ErrorCode::kPeerLost, what + " " + how + ": " + process.output());
}

double processor_seconds(pid_t pid) {
  return cli::seconds_of_ticks(cli::process_stat(pid).value_or(cli::ProcessStat()).own_ticks);
}

double memory_mb(pid_t pid, const std::string& field) {
  return field_mb("/proc/" + std::to_string(pid) + "/status", field);
}

double pss_mb() {
  return field_mb("/proc/self/smaps_rollup", "Pss:");
}

double pss_own_mb() {
  return field_mb("/proc/self/smaps_rollup", "Pss_Anon:") +
         field_mb("/proc/self/smaps_rollup", "Pss_Shmem:");
}

}  // namespace troupe::bench
