// A range [begin, end) of items that are divided among members: rows, columns, panels, chunks.
#pragma once

#include <cstdint>

namespace troupe::core {

struct Range {
  std::int64_t begin = 0, end = 0;

  // Always inlined, because the sources of every vector level call these (kernels/CMakeLists.txt).
  [[gnu::always_inline]] constexpr bool empty() const { return begin >= end; }
  [[gnu::always_inline]] constexpr std::int64_t size() const { return end - begin; }
  // The same range in smaller items, `count` per item: rows as elements, panels as columns.
  [[gnu::always_inline]] constexpr Range times(std::int64_t count) const {
    return {begin * count, end * count};
  }
};

}  // namespace troupe::core
