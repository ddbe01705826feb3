// Copies keys and values into shared memory, 64 positions (four blocks of 16) at a time, and merges
// 64 scores into a row's softmax as kernels/reference/attention.hpp does.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/primitives.cuh"

namespace troupe::kernels::cuda {

inline constexpr int kKeys = static_cast<int>(kAttentionBlock);
inline constexpr int kBlocksOfKeys = kKeys / static_cast<int>(kKvBlock);

// The segment, rows and heads that an item names.
struct ItemView {
  const std::int32_t* table;
  std::int64_t first_row;  // output row of the item's first row
  std::int64_t keys;       // up to the first row's position; each further row has one more
  int rows, heads;
  std::int64_t first_head;  // among all query heads
  std::int64_t kv_head;

  __device__ ItemView(const Attention& a, const AttentionItem& item) {
    const Segment segment = a.segments[item.segment];
    const std::int64_t group = a.heads / a.kv_heads;
    table = a.block_table + segment.table;
    first_row = std::int64_t{segment.first_row} + item.row_begin;
    keys = std::int64_t{segment.first_position} + item.row_begin + 1;
    rows = item.row_end - item.row_begin;
    heads = (item.head_end > 0 ? item.head_end : static_cast<int>(group)) - item.head_begin;
    first_head = item.kv_head * group + item.head_begin;
    kv_head = item.kv_head;
  }
  __device__ bool one_row() const { return rows == 1 && heads <= kOneRowHeads; }
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
};

// Floats between two blocks of 16 keys in shared memory. For keys, the padding makes the second
// half of a warp read other banks than the first.
__device__ inline int key_stride(int head_dim) {
  return (head_dim + 1) * static_cast<int>(kKvBlock);
}
__device__ inline int value_stride(int head_dim) {
  return head_dim * static_cast<int>(kKvBlock);
}
constexpr std::size_t key_value_bytes(std::int64_t head_dim) {
  return static_cast<std::size_t>((2 * head_dim + 1) * kKeys) * sizeof(float);
}

// Starts copying the KV blocks of 16 in [block, block + 64) that hold any of keys [first, end), and
// commits the group of copies. Other blocks are not touched; their table entries may be anything.
__device__ inline void fetch_blocks(const Attention& a,
                                    const ItemView& item,
                                    const float* pool,
                                    std::int64_t block,
                                    std::int64_t first,
                                    std::int64_t end,
                                    float* to,
                                    int stride) {
  const int pieces = static_cast<int>(a.head_dim) * 4;  // of 16 bytes
  std::int32_t entry[kBlocksOfKeys];                    // loads all entries before using one
#pragma unroll
  for (int i = 0; i < kBlocksOfKeys; ++i) {
    const std::int64_t key = block + i * kKvBlock;
    entry[i] = key + kKvBlock > first && key < end ? item.table[key / kKvBlock] : -1;
  }
#pragma unroll
  for (int i = 0; i < kBlocksOfKeys; ++i) {
    if (entry[i] < 0) continue;
    const float* const from = pool + (entry[i] * a.kv_heads + item.kv_head) * a.head_dim * kKvBlock;
    for (int at = static_cast<int>(threadIdx.x); at < pieces; at += static_cast<int>(blockDim.x))
      copy_async(to + i * stride + at * 4, from + at * 4);
  }
  copy_async_commit();
}

// A scaled score under the soft cap, of a model that has one.
__device__ inline float capped(const Attention& a, float score) {
  return a.softcap * tanh_f32(score / a.softcap);
}
// The scaled score, with the soft cap applied if there is one.
__device__ inline float scored(const Attention& a, float dot) {
  const float score = dot * a.scale;
  return a.softcap > 0.0f ? capped(a, score) : score;
}

// 64 scores of a row for one head, to be merged into its softmax. Each lane of a warp has keys
// `lane` and `lane + 32`.
struct Scores {
  float score0 = 0.0f, score1 = 0.0f;  // after the merge: weights
  bool seen0 = false, seen1 = false;   // unseen keys get weight 0
  bool any = false;  // whether the row sees any of these keys; if not, nothing is merged
  float max = 0.0f, sum = 0.0f;  // over earlier keys; after the merge, over these too
  float alpha = 1.0f;            // factor for earlier values
};

// A warp merges the scores of U rows or heads. Each step is done for all of them, to hide its
// latency. The order of the maxima could only change the sign of a zero, which affects no result.
template <int U>
__device__ inline void merge_scores(Scores (&s)[U]) {
  float best[U], lane[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    best[u] = s[u].seen0 ? larger(s[u].score0, -infinity()) : -infinity();
    best[u] = s[u].seen1 ? larger(s[u].score1, best[u]) : best[u];
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
#pragma unroll
    for (int u = 0; u < U; ++u)
      best[u] = larger(__shfl_xor_sync(kAllLanes, best[u], step), best[u]);
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const float merged = larger(best[u], s[u].max);
    const float alpha = exp_f32(s[u].max - merged);
    const float weight0 = exp_f32(s[u].score0 - merged), weight1 = exp_f32(s[u].score1 - merged);
    s[u].score0 = s[u].seen0 ? weight0 : 0.0f;
    s[u].score1 = s[u].seen1 ? weight1 : 0.0f;
    s[u].alpha = s[u].any ? alpha : 1.0f;
    s[u].max = s[u].any ? merged : s[u].max;
  }
  // Virtual lane l adds keys l, l + 16, l + 32, l + 48. Both halves of the warp do the same.
  const bool lower = threadIdx.x % 32 < 16;
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const float other0 = __shfl_xor_sync(kAllLanes, s[u].score0, 16);
    const float other1 = __shfl_xor_sync(kAllLanes, s[u].score1, 16);
    lane[u] = (lower ? s[u].score0 : other0) + (lower ? other0 : s[u].score0);
    lane[u] = lane[u] + (lower ? s[u].score1 : other1);
    lane[u] = lane[u] + (lower ? other1 : s[u].score1);
  }
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2)
#pragma unroll
    for (int u = 0; u < U; ++u)
      lane[u] = lane[u] + __shfl_xor_sync(kAllLanes, lane[u], step);
#pragma unroll
  for (int u = 0; u < U; ++u)
    s[u].sum = s[u].any ? __fmaf_rn(s[u].sum, s[u].alpha, lane[u]) : s[u].sum;
}

}  // namespace troupe::kernels::cuda
