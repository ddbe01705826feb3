#include "apps/pipeline/processes.hpp"

#include "apps/cli/process_stat.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

namespace troupe::pipeline {
namespace {

using cli::ProcessStat;

std::map<pid_t, ProcessStat> all_processes() {
  std::map<pid_t, ProcessStat> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (const auto process = cli::process_stat(pid)) out.emplace(pid, *process);
  }
  return out;
}

bool is_below(pid_t pid, pid_t top, const std::map<pid_t, ProcessStat>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = all.find(pid);
    if (found == all.end() || pid == top) return false;
    pid = found->second.parent;
    if (pid == top) return true;
  }
  return false;
}

std::map<pid_t, ProcessStat> descendants() {
  const auto all = all_processes();
  std::map<pid_t, ProcessStat> out;
  for (const auto& [pid, process] : all) {
    if (is_below(pid, ::getpid(), all)) out.emplace(pid, process);
  }
  return out;
}

}  // namespace

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

double descendants_cpu_s() {
  std::uint64_t ticks = cli::process_stat(::getpid()).value_or(ProcessStat()).reaped_ticks;
  for (const auto& [pid, process] : descendants())
    ticks += process.own_ticks + process.reaped_ticks;
  return cli::seconds_of_ticks(ticks);
}

double process_cpu_s(pid_t pid) {
  return cli::seconds_of_ticks(cli::process_stat(pid).value_or(ProcessStat()).own_ticks);
}

void reap_orphans(pid_t spared) {
  for (const auto& [pid, process] : descendants()) {
    if (process.parent == ::getpid() && process.state == 'Z' && pid != spared)
      ::waitpid(pid, nullptr, WNOHANG);
  }
}

void end_descendants() {
  using Clock = std::chrono::steady_clock;
  const auto kill_at = Clock::now() + std::chrono::seconds(5);
  for (int round = 0;; ++round) {
    reap_orphans(0);
    const auto left = descendants();
    if (left.empty()) return;
    const bool late = Clock::now() >= kill_at;
    for (const auto& [pid, process] : left) {
      if (process.state != 'Z' && (late || round == 0)) ::kill(pid, late ? SIGKILL : SIGTERM);
    }
    if (late && Clock::now() >= kill_at + std::chrono::seconds(5)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace troupe::pipeline
