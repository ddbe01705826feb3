#include "runtime/core/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace troupe::core {
namespace {

// Advises on the pages that lie wholly within the block.
void advise(void* block, std::size_t bytes, int advice) noexcept {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

void forget_pages(void* block, std::size_t bytes) noexcept {
  advise(block, bytes, MADV_DONTNEED);
}

void use_small_pages(void* block, std::size_t bytes) noexcept {
  advise(block, bytes, MADV_NOHUGEPAGE);
}

}  // namespace troupe::core
