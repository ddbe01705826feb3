#include "apps/cli/process_stat.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace troupe::cli {

std::optional<ProcessStat> process_stat(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  const auto name_end = line.rfind(')');
  if (name_end == line.npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcessStat out;
  std::string skipped;
  fields >> out.state >> out.parent;
  for (int i = 0; i < 9; ++i)
    fields >> skipped;
  std::uint64_t user = 0, system = 0, reaped_user = 0, reaped_system = 0;
  fields >> user >> system >> reaped_user >> reaped_system;
  if (fields.fail()) return std::nullopt;
  out.own_ticks = user + system;
  out.reaped_ticks = reaped_user + reaped_system;
  return out;
}

double seconds_of_ticks(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace troupe::cli
