// Paged attention in the order of kernels/reference/attention.hpp. A tile holds "virtual rows": for
// each row, the query heads of one kv head side by side. It goes over blocks of 64 keys: scores
// with sixteen keys per vector, softmax merge, then weighted values with sixteen dimensions per
// vector. The keys that a row sees begin and end no earlier than those of the row before it, so the
// rows that see a block are a contiguous range of the tile.
#pragma once

#include "kernels/cpu/attention_tiles.hpp"
#include "kernels/scalar.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr int kQueryTile = 24;  // virtual rows per tile

struct QueryTile {
  int rows = 0;
  const float* q[kQueryTile];
  float* out[kQueryTile];
  std::int64_t from[kQueryTile];  // each row sees keys [from, keys)
  std::int64_t keys[kQueryTile];
  float max[kQueryTile];
  float sum[kQueryTile];
};

// The scaled score, with the soft cap applied if there is one.
inline Vec scaled(Vec dot, const Attention& a) {
  const Vec score = dot * Vec::all(a.scale);
  return a.softcap > 0.0f ? Vec::all(a.softcap) * tanh(score / Vec::all(a.softcap)) : score;
}

// `x` in the lanes from `from` on where `mask` is set; `otherwise` elsewhere.
inline Vec between(std::int64_t from, Mask mask, Vec x, Vec otherwise) {
  const Vec up_to = select(mask, x, otherwise);
  return from > 0 ? select(Mask::first(from), otherwise, up_to) : up_to;
}

// Turns scores[64] of one row, which sees keys [from, seen) of the block, into softmax weights.
// Returns alpha, the factor for the sums of earlier blocks.
inline float softmax_merge(const Attention& a,
                           float* scores,
                           std::int64_t from,
                           std::int64_t seen,
                           float& max,
                           float& sum) {
  Vec s[kKvBlocks];
  Vec largest = Vec::all(-kInfinity);
  const int first = static_cast<int>(from / kKvBlock);
  const int blocks = static_cast<int>((seen + kKvBlock - 1) / kKvBlock);
  for (int b = first; b < blocks; ++b) {
    const Mask mask = Mask::first(seen - b * kKvBlock);
    s[b] = between(from - b * kKvBlock, mask, scaled(Vec::load(scores + b * kKvBlock), a),
                   Vec::all(-kInfinity));
    largest = larger(s[b], largest);
  }
  const float block_max = largest.max();
  const float new_max = block_max > max ? block_max : max;
  const float alpha = exp_f32(max - new_max);
  Vec total = Vec::zero();
  for (int b = first; b < blocks; ++b) {
    const Mask mask = Mask::first(seen - b * kKvBlock);
    const Vec p = between(from - b * kKvBlock, mask, exp(s[b] - Vec::all(new_max)), Vec::zero());
    total = total + p;
    p.store(scores + b * kKvBlock);
  }
  sum = __builtin_fmaf(sum, alpha, total.sum());
  max = new_max;
  return alpha;
}

// Locates the keys and values of one kv head of a sequence.
struct Sequence {
  const std::int32_t* table;
  std::int64_t kv_head;

  // Sets KV blocks [first, end) of the attention block that starts at key `begin`; leaves the
  // others unchanged.
  void view(const Attention& a,
            const float* pool,
            std::int64_t begin,
            int first,
            int end,
            BlockView& out) const {
    const std::int64_t floats = kKvBlock * a.head_dim;
    for (int b = first; b < end; ++b)
      out.base[b] = pool + (table[begin / kKvBlock + b] * a.kv_heads + kv_head) * floats;
  }
};

// The number of KV blocks of the attention block at `begin` that hold keys below `keys`.
inline int blocks_below(std::int64_t keys, std::int64_t begin) {
  return static_cast<int>((smaller(kAttentionBlock, keys - begin) + kKvBlock - 1) / kKvBlock);
}

// Sets `out` to the keys that `item` reads first, so that they can be prefetched.
inline void first_keys(const Attention& a, const AttentionItem& item, BlockView& out) {
  const Segment& segment = a.segments[item.segment];
  const std::int64_t keys = segment.first_position + item.row_begin + 1;
  const std::int64_t from = first_key(keys, a.window);
  const std::int64_t begin = from / kAttentionBlock * kAttentionBlock;
  const Sequence sequence{a.block_table + segment.table, item.kv_head};
  sequence.view(a, a.k_pool.f32(), begin, static_cast<int>((from - begin) / kKvBlock),
                blocks_below(keys, begin), out);
}

inline void attend(const Attention& a,
                   const Sequence& sequence,
                   const AttentionItem* next,
                   QueryTile& tile) {
  alignas(64) float scores[kQueryTile * kAttentionBlock];
  const std::int64_t keys_max = tile.keys[tile.rows - 1];
  int first = 0;  // rows [first, end) see part of the block
  int end = 0;
  for (std::int64_t begin = tile.from[0] / kAttentionBlock * kAttentionBlock; begin < keys_max;
       begin += kAttentionBlock) {
    while (tile.keys[first] <= begin)
      ++first;
    while (end < tile.rows && tile.from[end] < begin + kAttentionBlock)
      ++end;
    const int rows = end - first;
    std::int64_t from[kQueryTile];
    std::int64_t seen[kQueryTile];
    for (int r = 0; r < rows; ++r) {
      from[r] = tile.from[first + r] > begin ? tile.from[first + r] - begin : 0;
      seen[r] = smaller(kAttentionBlock, tile.keys[first + r] - begin);
    }
    const int blocks = static_cast<int>((seen[rows - 1] + kKvBlock - 1) / kKvBlock);
    const int before = static_cast<int>(from[0] / kKvBlock);  // leading KV blocks that no row sees
    BlockView k{}, v{};
    sequence.view(a, a.k_pool.f32(), begin, before, blocks, k);
    sequence.view(a, a.v_pool.f32(), begin, before, blocks, v);
    BlockView ahead = k;  // by default prefetch nothing new
    const std::int64_t end_key = begin + kAttentionBlock;
    if (end_key < keys_max) {
      sequence.view(a, a.k_pool.f32(), end_key, 0, blocks_below(keys_max, end_key), ahead);
    } else if (next != nullptr) {
      first_keys(a, *next, ahead);
    }
    dot_tile(rows, tile.q + first, k, v, before, blocks, a.head_dim, scores);
    float alpha[kQueryTile];
    for (int r = 0; r < rows; ++r)
      alpha[r] = softmax_merge(a, scores + r * kAttentionBlock, from[r], seen[r],
                               tile.max[first + r], tile.sum[first + r]);
    value_tile(rows, scores, alpha, v, ahead, from, seen, a.head_dim, tile.out + first);
  }
}

// `next`: the thread's next item, whose keys are prefetched; may be null.
void attention_item(const Attention& a, const AttentionItem& item, const AttentionItem* next) {
  const Segment& segment = a.segments[item.segment];
  const std::int64_t shared =
      a.heads / a.kv_heads;  // query heads per kv head; the item may take only some
  const std::int64_t group = (item.head_end > 0 ? item.head_end : shared) - item.head_begin;
  const std::int64_t first_head = item.kv_head * shared + item.head_begin;
  const std::int64_t total = (item.row_end - item.row_begin) * group;
  QueryTile tile;
  for (std::int64_t begin = 0; begin < total; begin += kQueryTile) {
    tile.rows = static_cast<int>(smaller(kQueryTile, total - begin));
    for (int r = 0; r < tile.rows; ++r) {
      const std::int64_t i = item.row_begin + (begin + r) / group;
      const std::int64_t head = first_head + (begin + r) % group;
      const std::int64_t row = segment.first_row + i;
      tile.q[r] = a.q + row * a.ldq + head * a.head_dim;
      tile.out[r] = a.out + row * a.ldo + head * a.head_dim;
      tile.keys[r] = segment.first_position + i + 1;
      tile.from[r] = first_key(tile.keys[r], a.window);
      tile.max[r] = -kInfinity;
      tile.sum[r] = 0.0f;
      for_lanes(a.head_dim,
                [&](std::int64_t d, auto mask) { store(tile.out[r] + d, Vec::zero(), mask); });
    }
    attend(a, {a.block_table + segment.table, item.kv_head},
           begin + kQueryTile < total ? nullptr : next, tile);
    for (int r = 0; r < tile.rows; ++r) {
      const Vec inverse = Vec::all(1.0f / tile.sum[r]);
      for_lanes(a.head_dim, [&](std::int64_t d, auto mask) {
        store(tile.out[r] + d, load(tile.out[r] + d, mask) * inverse, mask);
      });
      if (a.lse == nullptr) continue;
      const std::int64_t row = segment.first_row + item.row_begin + (begin + r) / group;
      const std::int64_t head = first_head + (begin + r) % group;
      a.lse[row * a.heads + head] = tile.max[r] + log_f32(tile.sum[r]);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
