// What this process may use of the machine: cores, memory, disk. Read from the kernel when asked;
// values that cannot be read are 0 or empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::app {

struct MemoryFacts {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::uint64_t limit_bytes = 0;  // of the control group; 0 = none
};

struct DiskFacts {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

std::string processor_name();
// Cores in the affinity mask, cut to the control group's quota.
int usable_cores();
// Threads as a flag names them: 0 for all usable cores.
int cores_for(std::int64_t threads);
MemoryFacts memory_facts();
// Of the file system that holds `path` or its nearest existing parent.
DiskFacts disk_facts(std::filesystem::path path);

// "1.5 GiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace troupe::app
