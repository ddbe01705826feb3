#include "runtime/core/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace troupe::core {
namespace {

struct Pages {
  std::uintptr_t begin = 0, end = 0;
};

// The pages that lie wholly within the block.
Pages pages_in(const void* block, std::size_t bytes) noexcept {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  return {(at + page - 1) / page * page, (at + bytes) / page * page};
}

void advise(void* block, std::size_t bytes, int advice) noexcept {
  const Pages pages = pages_in(block, bytes);
  if (pages.begin < pages.end)
    (void)::madvise(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, advice);
}

}  // namespace

void forget_pages(void* block, std::size_t bytes) noexcept {
  advise(block, bytes, MADV_DONTNEED);
}

void use_small_pages(void* block, std::size_t bytes) noexcept {
  advise(block, bytes, MADV_NOHUGEPAGE);
}

}  // namespace troupe::core
