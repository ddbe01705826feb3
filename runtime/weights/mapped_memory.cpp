#include "runtime/weights/mapped_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::weights {

core::Result<std::shared_ptr<const MappedMemory>> MappedMemory::map(const net::OwnedFd& memory,
                                                                    std::uint64_t id,
                                                                    std::uint64_t bytes) {
  struct stat facts {};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (::fstat(memory.get(), &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) != bytes ||
      seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return core::fail(core::ErrorCode::kData,
                      "the shared memory of the weights has " + std::to_string(facts.st_size) +
                          " bytes, " + std::to_string(bytes) + " were announced, or can shrink");
  }
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, memory.get(), 0);
  if (data == MAP_FAILED) {
    return core::fail(core::ErrorCode::kResources,
                      "cannot map " + std::to_string(bytes >> 20) +
                          " MiB of shared weights: " + std::strerror(errno));
  }
  ::madvise(data, bytes, MADV_HUGEPAGE);
  ::madvise(data, bytes, MADV_POPULATE_READ);
  return std::shared_ptr<const MappedMemory>(
      new MappedMemory(static_cast<const char*>(data), id, bytes));
}

MappedMemory::~MappedMemory() {
  ::munmap(const_cast<char*>(data_), bytes_);
}

}  // namespace troupe::weights
