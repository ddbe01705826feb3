// The gradient of attention in the order of kernels/reference/attention_backward.hpp. For each
// block of 64 keys, tiles of virtual rows (attention.hpp) recompute weights and their gradients;
// the three products then run as chains over keys (dq) and over rows ascending (dk, dv).
#pragma once

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_outer.hpp"
#include "kernels/cpu/pack.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr int kBackwardTile = 48;

struct BackwardTile {
  int rows = 0;
  const float* q[kBackwardTile];
  const float* out[kBackwardTile];
  const float* dout[kBackwardTile];
  float* dq[kBackwardTile];
  std::int64_t from[kBackwardTile];  // each row sees keys [from, keys)
  std::int64_t keys[kBackwardTile];
  float lse[kBackwardTile];
  float delta[kBackwardTile];  // sum of dout * out
  alignas(64) float p[kBackwardTile * kAttentionBlock];
  alignas(64) float ds[kBackwardTile * kAttentionBlock];
};

// One block of 64 keys, transposed: keys as [key][head_dim] with their gradient, and values as
// [head_dim][16 keys].
struct TurnedBlock {
  alignas(64) float k[kAttentionBlock * kHeadDimMax];
  alignas(64) float v[kAttentionBlock * kHeadDimMax];
  alignas(64) float dk[kAttentionBlock * kHeadDimMax];
};

// What the rows of a tile see of one block of 64 keys. Rows [first, end) see some of it. Row r sees
// keys [from[r], seen[r]), all within KV blocks [before, blocks).
struct SeenKeys {
  int first = 0;
  int end = 0;
  int before = 0;
  int blocks = 0;
  std::int64_t from[kBackwardTile];
  std::int64_t seen[kBackwardTile];

  SeenKeys(const BackwardTile& tile, std::int64_t begin) {
    while (first < tile.rows && tile.keys[first] <= begin)
      ++first;
    end = first;
    for (; end < tile.rows && tile.from[end] < begin + kAttentionBlock; ++end) {
      from[end] = tile.from[end] > begin ? tile.from[end] - begin : 0;
      seen[end] = smaller(kAttentionBlock, tile.keys[end] - begin);
    }
    if (first == end) return;
    before = static_cast<int>(from[first] / kKvBlock);
    blocks = static_cast<int>((seen[end - 1] + kKvBlock - 1) / kKvBlock);
  }
};

// Computes p and ds of the rows that see the block. On entry tile.p holds the products q k, tile.ds
// the products dout v.
inline void weight_gradients(const Attention& a, const SeenKeys& at, BackwardTile& tile) {
  for (int r = at.first; r < at.end; ++r) {
    float* p = tile.p + r * kAttentionBlock;
    float* ds = tile.ds + r * kAttentionBlock;
    for (int b = at.before; b < at.blocks; ++b) {
      const std::int64_t start = b * kKvBlock;
      const Mask mask = Mask::first(at.seen[r] > start ? at.seen[r] - start : 0);
      const Vec dp = Vec::load(ds + start) - Vec::all(tile.delta[r]);
      Vec score = Vec::load(p + start) * Vec::all(a.scale);
      Vec slope = Vec::all(1.0f);
      if (a.softcap > 0.0f) {
        const Vec t = tanh(score / Vec::all(a.softcap));
        slope = fma(-t, t, slope);
        score = Vec::all(a.softcap) * t;
      }
      const Vec weight = exp(score - Vec::all(tile.lse[r]));
      const Vec gradient = ((weight * dp) * slope) * Vec::all(a.scale);
      between(at.from[r] - start, mask, weight, Vec::zero()).store(p + start);
      between(at.from[r] - start, mask, gradient, Vec::zero()).store(ds + start);
    }
  }
}

// Processes one block of 64 keys from position `begin` on for one tile of rows.
inline void backward_block(const AttentionBackward& b,
                           const std::int32_t* table,
                           std::int64_t kv_head,
                           std::int64_t begin,
                           TurnedBlock& turned,
                           BackwardTile& tile) {
  const Attention& a = b.forward;
  const SeenKeys at(tile, begin);
  if (at.first == at.end) return;
  const int rows = at.end - at.first;
  const std::int64_t block_floats = kKvBlock * a.head_dim;
  BlockView k{}, turned_k{}, turned_v{};
  std::int64_t base[kKvBlocks] = {};
  for (int i = at.before; i < at.blocks; ++i) {
    base[i] = (table[begin / kKvBlock + i] * a.kv_heads + kv_head) * block_floats;
    k.base[i] = a.k_pool.f32() + base[i];
    turned_k.base[i] = turned.k + i * block_floats;
    turned_v.base[i] = turned.v + i * block_floats;
  }
  float* p = tile.p + at.first * kAttentionBlock;
  float* ds = tile.ds + at.first * kAttentionBlock;
  dot_tile(rows, tile.q + at.first, k, k, at.before, at.blocks, a.head_dim, p);
  dot_tile(rows, tile.dout + at.first, turned_v, turned_v, at.before, at.blocks, a.head_dim, ds);
  weight_gradients(a, at, tile);
  value_tile(rows, ds, nullptr, turned_k, turned_k, at.from + at.first, at.seen + at.first,
             a.head_dim, tile.dq + at.first);
  int first = at.first;  // rows [first, end) see some of the KV block's 16 keys
  int end = at.first;
  for (int i = at.before; i < at.blocks; ++i) {
    while (at.seen[first] <= i * kKvBlock)
      ++first;
    while (end < at.end && at.from[end] < (i + 1) * kKvBlock)
      ++end;
    add_outer(tile.ds + i * kKvBlock, tile.q, first, end, turned.dk + i * block_floats, a.head_dim);
    add_outer(tile.p + i * kKvBlock, tile.dout, first, end, b.dv_pool + base[i], a.head_dim);
  }
}

inline void fill_tile(const AttentionBackward& b,
                      const Segment& segment,
                      std::int64_t kv_head,
                      std::int64_t begin,
                      std::int64_t total,
                      BackwardTile& tile) {
  const Attention& a = b.forward;
  const std::int64_t group = a.heads / a.kv_heads;
  tile.rows = static_cast<int>(smaller(kBackwardTile, total - begin));
  for (int r = 0; r < tile.rows; ++r) {
    const std::int64_t i = (begin + r) / group;
    const std::int64_t head = kv_head * group + (begin + r) % group;
    const std::int64_t row = segment.first_row + i;
    const std::int64_t column = head * a.head_dim;
    tile.q[r] = a.q + row * a.ldq + column;
    tile.out[r] = a.out + row * a.ldo + column;
    tile.dout[r] = b.dout + row * b.lddo + column;
    tile.dq[r] = b.dq + row * b.lddq + column;
    tile.keys[r] = segment.first_position + i + 1;
    tile.from[r] = first_key(tile.keys[r], a.window);
    tile.lse[r] = a.lse[row * a.heads + head];
    Vec delta = Vec::zero();
    for_lanes(a.head_dim, [&](std::int64_t d, auto mask) {
      delta = fma(load(tile.dout[r] + d, mask), load(tile.out[r] + d, mask), delta);
    });
    tile.delta[r] = delta.sum();
  }
}

void attention_gradient(const AttentionBackward& b,
                        std::int64_t segment_index,
                        std::int64_t kv_head) {
  const Attention& a = b.forward;
  const Segment& segment = a.segments[segment_index];
  const std::int32_t* table = a.block_table + segment.table;
  const std::int64_t group = a.heads / a.kv_heads;
  const std::int64_t total = segment.rows * group;
  const std::int64_t keys = segment.first_position + segment.rows;
  const std::int64_t block_floats = kKvBlock * a.head_dim;
  for (std::int64_t i = 0; i < segment.rows; ++i)
    for_lanes(group * a.head_dim, [&](std::int64_t d, auto mask) {
      store(b.dq + (segment.first_row + i) * b.lddq + kv_head * group * a.head_dim + d, Vec::zero(),
            mask);
    });
  TurnedBlock turned;
  BackwardTile tile;
  const std::int64_t from = first_key(segment.first_position + 1, a.window);
  for (std::int64_t begin = from / kAttentionBlock * kAttentionBlock; begin < keys;
       begin += kAttentionBlock) {
    const std::int64_t before = from > begin ? (from - begin) / kKvBlock : 0;
    const auto each_block = [&](auto&& f) {
      for (std::int64_t i = before; i < kKvBlocks && begin + i * kKvBlock < keys; ++i)
        f(i * block_floats, (table[begin / kKvBlock + i] * a.kv_heads + kv_head) * block_floats);
    };
    each_block([&](std::int64_t at, std::int64_t base) {
      transpose_block(a.k_pool.f32() + base, kKvBlock, a.head_dim, kKvBlock, turned.k + at,
                      a.head_dim);
      transpose_block(b.dk_pool + base, kKvBlock, a.head_dim, kKvBlock, turned.dk + at, a.head_dim);
      transpose_block(a.v_pool.f32() + base, a.head_dim, kKvBlock, a.head_dim, turned.v + at,
                      kKvBlock);
    });
    for (std::int64_t row = 0; row < total; row += kBackwardTile) {
      fill_tile(b, segment, kv_head, row, total, tile);
      backward_block(b, table, kv_head, begin, turned, tile);
    }
    each_block([&](std::int64_t at, std::int64_t base) {
      transpose_block(turned.dk + at, a.head_dim, kKvBlock, a.head_dim, b.dk_pool + base, kKvBlock);
    });
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
