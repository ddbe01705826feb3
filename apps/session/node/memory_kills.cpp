#include "apps/session/node/memory_kills.hpp"

#include <fstream>
#include <sstream>
#include <utility>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

// The number in the line "oom_kill N" of a file.
std::optional<std::uint64_t> kills_in(const fs::path& file) {
  std::ifstream in(file);
  std::string name;
  for (std::uint64_t count = 0; in >> name;) {
    if (name == "oom_kill" && in >> count) return count;
    in.ignore(1 << 16, '\n');
  }
  return std::nullopt;
}

std::string text_in(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The file with the counter of the group of memory in a text like /proc/PID/cgroup, of version 1 or
// 2. In a container the path may be the host's, and the group be the root of what is mounted.
fs::path counter_of(const std::string& groups, const fs::path& root) {
  std::istringstream lines(groups);
  fs::path found;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool memory = kinds.find(",memory,") != kinds.npos;
    if (!memory && kinds != ",,") continue;
    const fs::path top = memory ? root / "memory" : root;
    const char* const name = memory ? "memory.oom_control" : "memory.events";
    for (const fs::path& folder : {top / line.substr(second + 1).erase(0, 1), top}) {
      if (!kills_in(folder / name)) continue;
      if (found.empty() || memory) found = folder / name;
      break;
    }
  }
  return found;
}

}  // namespace

MemoryKills::MemoryKills(pid_t pid, fs::path root, fs::path machine)
    : pid_(pid), root_(std::move(root)), machine_(std::move(machine)) {
  on_machine_ = kills_in(machine_);
  look();
}

void MemoryKills::look() {
  std::string now = text_in("/proc/" + std::to_string(pid_) + "/cgroup");
  if (now.empty() || now == groups_) return;
  const fs::path file = counter_of(now, root_);
  groups_ = std::move(now);
  if (file.empty() || file == group_) return;
  group_ = file;
  in_group_ = kills_in(group_);
}

MemoryKills::Verdict MemoryKills::of_killed() const {
  const auto in_group = kills_in(group_), on_machine = kills_in(machine_);
  if (in_group && in_group_ && *in_group > *in_group_) {
    return {true, ": the kernel killed it for want of memory (oom_kill in " + group_.string() +
                      " went from " + std::to_string(*in_group_) + " to " +
                      std::to_string(*in_group) + ")"};
  }
  const std::string other = ", by hand or by another program: the kernel has killed none ";
  if (in_group && in_group_) return {false, other + "of its control group for want of memory"};
  if (!on_machine || !on_machine_) return {true, ", by hand or most likely for want of memory"};
  if (*on_machine == *on_machine_) return {false, other + "for want of memory"};
  return {true, ", most likely by the kernel for want of memory: it has killed " +
                    std::to_string(*on_machine - *on_machine_) +
                    " processes of this machine for that since this one was started"};
}

}  // namespace troupe::session
