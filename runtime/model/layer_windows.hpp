// Counts the keys that rows attend to, over all layers. A plan uses this cost to divide attention
// among a team; all layers use the same division. A value type.
#pragma once

#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe::model {

struct LayerWindows {
  std::int64_t full = 1;     // layers whose rows see every key up to their own
  std::int64_t sliding = 0;  // layers whose rows see only the last `window` of these
  std::int64_t window = 0;

  // Keys that the rows of a segment attend to, over all layers. Row i attends to first_position + i
  // + 1 keys, or to the window if that is smaller.
  std::int64_t keys_of(const kernels::Segment& segment) const {
    const std::int64_t rows = segment.rows, first = segment.first_position;
    const auto up_to = [first](std::int64_t count) {
      return count * first + count * (count + 1) / 2;
    };
    const std::int64_t growing = std::clamp<std::int64_t>(window - first, 0, rows);
    return full * up_to(rows) + sliding * (up_to(growing) + (rows - growing) * window);
  }
  // Softmax blocks that a row visits, over all layers. `keys` counts the keys up to the row's own.
  std::int64_t blocks_of(std::int64_t keys) const {
    const std::int64_t last = (keys + kernels::kAttentionBlock - 1) / kernels::kAttentionBlock;
    const std::int64_t skipped = kernels::first_key(keys, window) / kernels::kAttentionBlock;
    return full * last + sliding * (last - skipped);
  }
};

}  // namespace troupe::model
