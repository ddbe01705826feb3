// Attention of few rows in f32, each spread over many thread blocks (attention_spread.cu).
#pragma once

#include "kernels/cuda/attention_keys.cuh"

namespace troupe::kernels::cuda {

// The scores of a launch's items in the workspace: of each item `heads` rows of `tiles` times 64.
struct Spread {
  float* scores = nullptr;
  int heads = 0, tiles = 0;  // of an item; 0 tiles: no item is spread

  __device__ float* of(unsigned item, int head) const {
    return scores + (std::int64_t{item} * heads + head) * tiles * kKeys;
  }
};

// The keys that an item of one row sees, in tiles of 64.
struct KeyTiles {
  std::int64_t first, end, base;  // keys [first, end); the first tile begins at `base`
  __device__ KeyTiles(const Attention& a, const ItemView& item)
      : first(first_key(item.keys, a.window)), end(item.keys), base(first / kKeys * kKeys) {}
  __device__ int count() const { return static_cast<int>((end - base + kKeys - 1) / kKeys); }
  __device__ std::int64_t begin_of(int tile) const { return base + std::int64_t{tile} * kKeys; }
  // Seen keys of a tile, counted from its beginning: [from, to).
  __device__ int from(int tile) const {
    const std::int64_t begin = begin_of(tile);
    return begin < first ? static_cast<int>(first - begin) : 0;
  }
  __device__ int to(int tile) const {
    const std::int64_t left = end - begin_of(tile);
    return left < kKeys ? static_cast<int>(left) : kKeys;
  }
  __device__ bool fit(const Spread& spread) const { return count() <= spread.tiles; }
};

// What is spread of `count` items of one row: nothing where there are enough of them for half of the
// multiprocessors. Items that see more keys than it has tiles for are not spread.
Spread spread_of(const Attention& a, std::int64_t count);
// Does the items of one row that fit; launches nothing where none is spread.
void attention_spread(const Attention& a,
                      const AttentionItem* items,
                      std::int64_t count,
                      const Spread& spread);

}  // namespace troupe::kernels::cuda
