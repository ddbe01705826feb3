// Attention of few rows in f32, each spread over many thread blocks (attention_spread.cu).
#pragma once

#include "kernels/cuda/attention_keys.cuh"

namespace troupe::kernels::cuda {

// The scores of a launch in the workspace: for each item, `heads` rows of `tiles` times 64.
struct Spread {
  float* scores = nullptr;
  int heads = 0, tiles = 0;  // of an item; 0 tiles: no item is spread

  __device__ float* of(unsigned item, int head) const {
    return scores + (std::int64_t{item} * heads + head) * tiles * kKeys;
  }
  __device__ bool holds(const KeyTiles& keys) const { return keys.count() <= tiles; }
};

// How `count` items of one row are spread: not at all if they are enough for half of the
// multiprocessors. Items that see more keys than it has tiles for are not spread.
Spread spread_of(const Attention& a, std::int64_t count);
// Does the items of one row that fit; launches nothing where none is spread.
void attention_spread(const Attention& a,
                      const AttentionItem* items,
                      std::int64_t count,
                      const Spread& spread);

}  // namespace troupe::kernels::cuda
