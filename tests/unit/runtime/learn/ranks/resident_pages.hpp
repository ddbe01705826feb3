// How much of a block of memory the system holds.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::learn::test {

// Pages of the block that the system holds in memory.
inline std::int64_t resident_pages(const void* block, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(block) / page * page;
  const std::size_t count = (reinterpret_cast<std::uintptr_t>(block) + bytes - begin) / page;
  std::vector<unsigned char> pages(count);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), count * page, pages.data()), 0);
  std::int64_t resident = 0;
  for (const unsigned char one : pages)
    resident += one & 1;
  return resident;
}

}  // namespace troupe::learn::test
