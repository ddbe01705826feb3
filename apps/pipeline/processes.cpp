#include "apps/pipeline/processes.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace troupe::pipeline {
namespace {

struct Process {
  pid_t parent = 0;
  char state = '?';
  std::uint64_t own_ticks = 0, reaped_ticks = 0;
};

bool read_stat(pid_t pid, Process& out) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(in, line)) return false;
  const auto name_end = line.rfind(')');
  if (name_end == line.npos) return false;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  fields >> out.state >> out.parent;
  for (int i = 0; i < 9; ++i)
    fields >> skipped;
  std::uint64_t user = 0, system = 0, reaped_user = 0, reaped_system = 0;
  fields >> user >> system >> reaped_user >> reaped_system;
  out.own_ticks = user + system;
  out.reaped_ticks = reaped_user + reaped_system;
  return !fields.fail();
}

std::map<pid_t, Process> all_processes() {
  std::map<pid_t, Process> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    Process process;
    if (read_stat(pid, process)) out.emplace(pid, process);
  }
  return out;
}

bool is_below(pid_t pid, pid_t top, const std::map<pid_t, Process>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = all.find(pid);
    if (found == all.end() || pid == top) return false;
    pid = found->second.parent;
    if (pid == top) return true;
  }
  return false;
}

std::map<pid_t, Process> descendants() {
  const auto all = all_processes();
  std::map<pid_t, Process> out;
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
  Process own;
  read_stat(::getpid(), own);
  std::uint64_t ticks = own.reaped_ticks;
  for (const auto& [pid, process] : descendants())
    ticks += process.own_ticks + process.reaped_ticks;
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double process_cpu_s(pid_t pid) {
  Process process;
  if (!read_stat(pid, process)) return 0;
  return static_cast<double>(process.own_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
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
