// What this process may use of the machine: cores, memory, disk. Each call asks the kernel; values
// that cannot be read are 0 or empty (cores: 1).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::cli {

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
// Cores in the affinity mask, but at most the control group's quota.
int usable_cores();
// The number of threads that a flag asks for, where 0 means all usable cores.
int cores_for(std::int64_t threads);
MemoryFacts memory_facts();
// The bytes of this process in main memory.
std::uint64_t resident_bytes();
// Facts about the file system that holds `path` or its nearest existing parent.
DiskFacts disk_facts(std::filesystem::path path);

// A size for people: "1.5 GiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace troupe::cli
