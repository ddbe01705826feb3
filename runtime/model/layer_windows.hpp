// Counts the keys that the rows of a model attend to, over all layers: the cost by which a plan
// divides attention among a team. All layers use one division. A value type.
#pragma once

#include "kernels/shapes.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe::model {

struct LayerWindows {
  std::int64_t full = 1;     // layers whose rows see every key up to their own
  std::int64_t sliding = 0;  // layers whose rows see the last `window` of these
  std::int64_t window = 0;

  // Keys that the rows of a segment look at, over all layers: of row i, first_position + i + 1, or
  // the window where that is less.
  std::int64_t keys_of(const kernels::Segment& segment) const {
    const std::int64_t rows = segment.rows, first = segment.first_position;
    const auto up_to = [first](std::int64_t count) {
      return count * first + count * (count + 1) / 2;
    };
    const std::int64_t growing = std::clamp<std::int64_t>(window - first, 0, rows);
    return full * up_to(rows) + sliding * (up_to(growing) + (rows - growing) * window);
  }
  // Blocks of the softmax that a row with `keys` keys up to its own goes through, over all layers.
  std::int64_t blocks_of(std::int64_t keys) const {
    const std::int64_t last = (keys + kernels::kAttentionBlock - 1) / kernels::kAttentionBlock;
    const std::int64_t skipped = kernels::first_key(keys, window) / kernels::kAttentionBlock;
    return full * last + sliding * (last - skipped);
  }
};

}  // namespace troupe::model
