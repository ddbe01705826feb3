// What the kernel says of a process in /proc/PID/stat. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace troupe::cli {

struct ProcessStat {
  pid_t parent = 0;
  char state = '?';
  // Processor time in clock ticks: of its threads, and of children that it has waited for.
  std::uint64_t own_ticks = 0, reaped_ticks = 0;
};

// Nothing when there is no such process.
std::optional<ProcessStat> process_stat(pid_t pid);

double seconds_of_ticks(std::uint64_t ticks);

}  // namespace troupe::cli
