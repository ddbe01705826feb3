#include "runtime/core/buffer.hpp"

#include "runtime/core/shortage.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace troupe::core {
namespace {
constexpr std::size_t kMapFrom_bytes = std::size_t{4} << 20;
constexpr std::size_t kHugePage_bytes = std::size_t{2} << 20;

std::size_t mapped_size(std::size_t bytes) {
  return (bytes + kHugePage_bytes - 1) / kHugePage_bytes * kHugePage_bytes;
}
}  // namespace

void* allocate_aligned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes < kMapFrom_bytes) {
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == nullptr) end_for_want({"out of memory", kMoreMemory});
    std::memset(memory, 0, bytes);
    return memory;
  }
  // Maps more than needed, so that the block can start on a huge page, then unmaps both ends.
  const std::size_t size = mapped_size(bytes);
  void* raw = ::mmap(nullptr, size + kHugePage_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) {
    char what[64];
    std::snprintf(what, sizeof what, "the system refused %zu MiB of memory", size >> 20);
    end_for_want({what, kMoreMemory});
  }
  const auto start = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = (start + kHugePage_bytes - 1) / kHugePage_bytes * kHugePage_bytes;
  if (aligned > start) ::munmap(raw, aligned - start);
  const std::size_t tail = start + kHugePage_bytes - aligned;
  if (tail > 0) ::munmap(reinterpret_cast<void*>(aligned + size), tail);
  ::madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

void free_aligned(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  if (bytes < kMapFrom_bytes) {
    std::free(memory);
  } else {
    ::munmap(memory, mapped_size(bytes));
  }
}

}  // namespace troupe::core
