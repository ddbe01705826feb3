// A range [begin, end) of items, such as the rows, columns or panels that one member of a team
// computes.
#pragma once

#include <cstdint>

namespace troupe::core {

struct Range {
  std::int64_t begin = 0, end = 0;

  // Always inlined: sources for AVX2 and AVX-512 call these, and a linked copy of theirs would fail
  // on a processor without those instructions (kernels/CMakeLists.txt).
  [[gnu::always_inline]] constexpr bool empty() const { return begin >= end; }
  [[gnu::always_inline]] constexpr std::int64_t size() const { return end - begin; }
  // This range in smaller items, `count` per item: rows as elements, panels as columns.
  [[gnu::always_inline]] constexpr Range times(std::int64_t count) const {
    return {begin * count, end * count};
  }
};

}  // namespace troupe::core
