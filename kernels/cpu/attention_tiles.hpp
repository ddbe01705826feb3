// The two products of attention for a few query rows and up to 64 keys: scores, with sixteen keys
// per vector, and weighted values, with sixteen dimensions per vector. Used in both passes. Each
// output is one chain, over dimensions or over keys, ascending. Any thread; no state.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr int kKvBlocks = kAttentionBlock / kKvBlock;

// Tiles of at most this many rows prefetch the next data: they are bound by memory, larger ones by
// arithmetic.
constexpr int kAheadRows = 4;
constexpr int kAheadLevel = 3;  // into every cache level; into L2 alone gains half as much

// The KV blocks of one attention block and kv head: base addresses of keys or values. If it is only
// used for prefetching, it may name blocks that are never read.
struct BlockView {
  const float* base[kKvBlocks];
};

// scores[r][16 b + lane] = sum over d ascending of q[r][d] * k[b][d][lane], for kRows rows and
// kBlocks KV blocks. `ahead`: the same number of blocks, which are read next.
template <int kRows, int kBlocks>
[[gnu::noinline]] void dot_keys(const float* const* q,
                                const float* const* keys,
                                const float* const* ahead,
                                std::int64_t head_dim,
                                float* scores) {
  const float* row[kRows];
  const float* block[kBlocks];
  const float* next[kBlocks];
  Vec sum[kRows][kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    block[b] = keys[b];
    next[b] = ahead[b];
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    row[r] = q[r];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b)
      sum[r][b] = Vec::zero();
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    Vec k[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      k[b] = Vec::load(block[b] + d * kKvBlock);
      if constexpr (kRows <= kAheadRows) __builtin_prefetch(next[b] + d * kKvBlock, 0, kAheadLevel);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec x = Vec::all(row[r][d]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b)
        sum[r][b] = fma(x, k[b], sum[r][b]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b)
      sum[r][b].store(scores + r * kAttentionBlock + b * kKvBlock);
}

template <int kBlocks, int kRows = kDotRows>
inline void dot_some(int rows,
                     const float* const* q,
                     const float* const* keys,
                     const float* const* ahead,
                     std::int64_t head_dim,
                     float* scores) {
  if (rows == kRows) return dot_keys<kRows, kBlocks>(q, keys, ahead, head_dim, scores);
  if constexpr (kRows > 1) dot_some<kBlocks, kRows - 1>(rows, q, keys, ahead, head_dim, scores);
}

template <int kBlocks>
inline void dot_blocks(int rows,
                       const float* const* q,
                       const float* const* keys,
                       const float* const* ahead,
                       std::int64_t head_dim,
                       float* scores) {
  for (int r = 0; r < rows; r += kDotRows)
    dot_some<kBlocks>(rows - r < kDotRows ? rows - r : kDotRows, q + r, keys, ahead, head_dim,
                      scores + r * kAttentionBlock);
}

// Computes scores of `rows` rows against KV blocks [first, blocks) of the view.
inline void dot_tile(int rows,
                     const float* const* q,
                     const BlockView& keys,
                     const BlockView& ahead,
                     int first,
                     int blocks,
                     std::int64_t head_dim,
                     float* scores) {
  int b = first;
  for (; b + kDotBlocks <= blocks; b += kDotBlocks)
    dot_blocks<kDotBlocks>(rows, q, keys.base + b, ahead.base + b, head_dim, scores + b * kKvBlock);
  if constexpr (kDotBlocks > 2)
    for (; b + 2 <= blocks; b += 2)
      dot_blocks<2>(rows, q, keys.base + b, ahead.base + b, head_dim, scores + b * kKvBlock);
  for (; b < blocks; ++b)
    dot_blocks<1>(rows, q, keys.base + b, ahead.base + b, head_dim, scores + b * kKvBlock);
}

// out[r][dimensions] = out[r] * alpha[r] + chain over keys [begin, end) of weight[r][key] * v[key],
// for kRows rows and kVecs vectors of dimensions, the last one under `mask`. `ahead`: see
// BlockView.
template <int kRows, int kVecs, class LastMask>
[[gnu::noinline]] void add_values(const float* weight,
                                  const float* alpha,
                                  const BlockView& values,
                                  const BlockView& ahead,
                                  std::int64_t head_dim,
                                  std::int64_t d,
                                  std::int64_t begin,
                                  std::int64_t end,
                                  LastMask mask,
                                  float* const* out) {
  Vec sum[kRows][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      const float* from = out[r] + d + c * 16;
      sum[r][c] = c + 1 < kVecs ? Vec::load(from) : load(from, mask);
      if (alpha != nullptr) sum[r][c] = sum[r][c] * Vec::all(alpha[r]);
    }
  for (std::int64_t key = begin; key < end;) {
    const std::int64_t block_end = smaller(end, (key / kKvBlock + 1) * kKvBlock);
    const float* v = values.base[key / kKvBlock] + key % kKvBlock * head_dim + d;
    const float* next = ahead.base[key / kKvBlock] + key % kKvBlock * head_dim + d;
    for (; key < block_end; ++key, v += head_dim, next += head_dim) {
      Vec value[kVecs];
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) {
        value[c] = c + 1 < kVecs ? Vec::load(v + c * 16) : load(v + c * 16, mask);
        if constexpr (kRows <= kAheadRows) __builtin_prefetch(next + c * 16, 0, kAheadLevel);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec p = Vec::all(weight[r * kAttentionBlock + key]);
#pragma GCC unroll 8
        for (int c = 0; c < kVecs; ++c)
          sum[r][c] = fma(p, value[c], sum[r][c]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      float* to = out[r] + d + c * 16;
      if (c + 1 < kVecs) {
        sum[r][c].store(to);
      } else {
        store(to, sum[r][c], mask);
      }
    }
}

template <int kRows>
void value_rows(const float* weight,
                const float* alpha,
                const BlockView& values,
                const BlockView& ahead,
                std::int64_t head_dim,
                std::int64_t begin,
                std::int64_t end,
                float* const* out) {
  std::int64_t d = 0;
  for (; d + kValueVecs * 16 <= head_dim; d += kValueVecs * 16)
    add_values<kRows, kValueVecs>(weight, alpha, values, ahead, head_dim, d, begin, end, Full{},
                                  out);
  for (; d + 16 <= head_dim; d += 16)
    add_values<kRows, 1>(weight, alpha, values, ahead, head_dim, d, begin, end, Full{}, out);
  if (d < head_dim)
    add_values<kRows, 1>(weight, alpha, values, ahead, head_dim, d, begin, end,
                         Mask::first(head_dim - d), out);
}

template <int kRows = kValueRows>
inline void value_some(int rows,
                       const float* weight,
                       const float* alpha,
                       const BlockView& values,
                       const BlockView& ahead,
                       std::int64_t head_dim,
                       std::int64_t begin,
                       std::int64_t end,
                       float* const* out) {
  if (rows == kRows)
    return value_rows<kRows>(weight, alpha, values, ahead, head_dim, begin, end, out);
  if constexpr (kRows > 1)
    value_some<kRows - 1>(rows, weight, alpha, values, ahead, head_dim, begin, end, out);
}

// Adds the weighted values of `rows` rows. Row r sees keys [from[r], seen[r]) of the block; neither
// bound decreases from row to row. Null `alpha`: nothing is scaled.
inline void value_tile(int rows,
                       const float* weight,
                       const float* alpha,
                       const BlockView& values,
                       const BlockView& ahead,
                       const std::int64_t* from,
                       const std::int64_t* seen,
                       std::int64_t head_dim,
                       float* const* out) {
  for (int r = 0; r < rows; r += kValueRows) {
    const int some = rows - r < kValueRows ? rows - r : kValueRows;
    const float* p = weight + r * kAttentionBlock;
    const float* scale = alpha != nullptr ? alpha + r : nullptr;
    std::int64_t begin = from[r];
    if (from[r + some - 1] > begin) {  // windows start at different keys: first each row's own
      begin = from[r + some - 1];
      const bool shared = begin < seen[r];
      for (int i = 0; i < some; ++i)
        value_rows<1>(p + i * kAttentionBlock, scale != nullptr ? scale + i : nullptr, values,
                      ahead, head_dim, from[r + i], shared ? begin : seen[r + i], out + r + i);
      if (!shared) continue;
      scale = nullptr;
    }
    value_some(some, p, scale, values, ahead, head_dim, begin, seen[r], out + r);
    for (int i = 1; i < some; ++i)
      if (seen[r + i] > seen[r])
        value_rows<1>(p + i * kAttentionBlock, nullptr, values, ahead, head_dim, seen[r],
                      seen[r + i], out + r + i);
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
