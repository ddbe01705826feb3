#include "apps/cli/system_facts.hpp"

#include "runtime/core/texts.hpp"

#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace troupe::cli {
namespace {

// The number in the first line of a file; 0 when there is none ("max", missing).
std::uint64_t number_in(const char* path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  return in >> value ? value : 0;
}

// The text after the colon in the first line that begins with `key`; empty without such a line.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key) && line.find(':') != line.npos)
      return line.substr(line.find(':') + 1);
  return "";
}

std::uint64_t memory_line_bytes(std::string_view key) {
  const std::string value = value_in("/proc/meminfo", key);  // in KiB
  return value.empty() ? 0 : std::stoull(value) * 1024;
}

// The control group's CPU quota in cores, rounded up; 0 without one. Tries cgroups v2, then v1.
int quota_cores() {
  std::ifstream in("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(in >> quota >> period)) {
    std::ifstream old_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    if (!(old_quota >> quota) || quota <= 0) return 0;
    period = static_cast<double>(number_in("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  }
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

}  // namespace

std::string processor_name() {
  const std::string value = value_in("/proc/cpuinfo", "model name");
  return value.empty() ? "" : value.substr(1);  // without the blank after the colon
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const int quota = quota_cores(); quota > 0) cores = std::min(cores, quota);
  return std::max(1, cores);
}

int cores_for(std::int64_t threads) {
  return threads > 0 ? static_cast<int>(threads) : usable_cores();
}

MemoryFacts memory_facts() {
  MemoryFacts facts;
  facts.total_bytes = memory_line_bytes("MemTotal:");
  facts.available_bytes = memory_line_bytes("MemAvailable:");
  std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max");
  if (limit == 0) limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  if (limit > 0 && limit < facts.total_bytes) facts.limit_bytes = limit;
  return facts;
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  const bool read = static_cast<bool>(in >> all >> resident);
  return read ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

DiskFacts disk_facts(std::filesystem::path path) {
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(path, error) && path.has_relative_path())
    path = path.parent_path();
  struct statvfs stats = {};
  if (::statvfs(path.c_str(), &stats) != 0) return {};
  return {static_cast<std::uint64_t>(stats.f_bavail) * stats.f_frsize,
          static_cast<std::uint64_t>(stats.f_blocks) * stats.f_frsize};
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return core::printed("%.*f %s", unit == 0 ? 0 : 1, value, kUnits[unit]);
}

}  // namespace troupe::cli
