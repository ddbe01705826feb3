// The gradient of attention in the order of kernels/reference/attention_backward.cpp. For each
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
  std::int64_t keys[kBackwardTile];
  float lse[kBackwardTile];
  float delta[kBackwardTile];  // sum of dout * out
  alignas(64) float p[kBackwardTile * kAttentionBlock];
  alignas(64) float ds[kBackwardTile * kAttentionBlock];
};

// One block of 64 keys the other way round: keys [key][head_dim] with their gradient, and values
// [head_dim][16 keys].
struct TurnedBlock {
  alignas(64) float k[kAttentionBlock * kHeadDimMax];
  alignas(64) float v[kAttentionBlock * kHeadDimMax];
  alignas(64) float dk[kAttentionBlock * kHeadDimMax];
};

// p and ds of the tile's rows from `first` on; dp is in tile.ds on entry, scores in tile.p.
inline void weight_gradients(
    BackwardTile& tile, int first, const std::int64_t* seen, int blocks, float scale) {
  for (int r = first; r < tile.rows; ++r) {
    float* p = tile.p + r * kAttentionBlock;
    float* ds = tile.ds + r * kAttentionBlock;
    for (int b = 0; b < blocks; ++b) {
      const Mask mask = Mask::first(seen[r] > b * kKvBlock ? seen[r] - b * kKvBlock : 0);
      const Vec score = Vec::load(p + b * kKvBlock) * Vec::all(scale);
      const Vec weight = exp(score - Vec::all(tile.lse[r]));
      const Vec dp = Vec::load(ds + b * kKvBlock) - Vec::all(tile.delta[r]);
      select(mask, weight, Vec::zero()).store(p + b * kKvBlock);
      select(mask, (weight * dp) * Vec::all(scale), Vec::zero()).store(ds + b * kKvBlock);
    }
  }
}

// One block of 64 keys from position `begin` on against one tile of rows.
inline void backward_block(const AttentionBackward& b,
                           const std::int32_t* table,
                           std::int64_t kv_head,
                           std::int64_t begin,
                           TurnedBlock& turned,
                           BackwardTile& tile) {
  const Attention& a = b.forward;
  int first = 0;
  while (first < tile.rows && tile.keys[first] <= begin)
    ++first;
  if (first == tile.rows) return;
  std::int64_t seen[kBackwardTile];
  for (int r = first; r < tile.rows; ++r)
    seen[r] = smaller(kAttentionBlock, tile.keys[r] - begin);
  const int rows = tile.rows - first;
  const int blocks = static_cast<int>((seen[tile.rows - 1] + kKvBlock - 1) / kKvBlock);
  const std::int64_t block_floats = kKvBlock * a.head_dim;
  BlockView k{}, turned_k{}, turned_v{};
  std::int64_t base[kKvBlocks] = {};
  for (int i = 0; i < blocks; ++i) {
    base[i] = (table[begin / kKvBlock + i] * a.kv_heads + kv_head) * block_floats;
    k.base[i] = a.k_pool + base[i];
    turned_k.base[i] = turned.k + i * block_floats;
    turned_v.base[i] = turned.v + i * block_floats;
  }
  dot_tile(rows, tile.q + first, k, blocks, a.head_dim, tile.p + first * kAttentionBlock);
  dot_tile(rows, tile.dout + first, turned_v, blocks, a.head_dim,
           tile.ds + first * kAttentionBlock);
  weight_gradients(tile, first, seen, blocks, a.scale);
  value_tile(rows, tile.ds + first * kAttentionBlock, nullptr, turned_k, seen + first, a.head_dim,
             tile.dq + first);
  for (int i = 0; i < blocks; ++i) {
    while (seen[first] <= i * kKvBlock)
      ++first;  // rows that see none of these 16 keys
    add_outer(tile.ds + i * kKvBlock, tile.q, first, tile.rows, turned.dk + i * block_floats,
              a.head_dim);
    add_outer(tile.p + i * kKvBlock, tile.dout, first, tile.rows, b.dv_pool + base[i], a.head_dim);
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
    tile.lse[r] = a.lse[row * a.heads + head];
    Vec delta = Vec::zero();
    for_lanes(a.head_dim, [&](std::int64_t d, auto mask) {
      delta = fma(load(tile.dout[r] + d, mask), load(tile.out[r] + d, mask), delta);
    });
    tile.delta[r] = delta.sum();
  }
}

void attention_backward(const AttentionBackward& b,
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
  for (std::int64_t begin = 0; begin < keys; begin += kAttentionBlock) {
    const auto each_block = [&](auto&& f) {
      for (std::int64_t i = 0; i < kKvBlocks && begin + i * kKvBlock < keys; ++i)
        f(i * block_floats, (table[begin / kKvBlock + i] * a.kv_heads + kv_head) * block_floats);
    };
    each_block([&](std::int64_t at, std::int64_t base) {
      transpose_block(a.k_pool + base, kKvBlock, a.head_dim, kKvBlock, turned.k + at, a.head_dim);
      transpose_block(b.dk_pool + base, kKvBlock, a.head_dim, kKvBlock, turned.dk + at, a.head_dim);
      transpose_block(a.v_pool + base, a.head_dim, kKvBlock, a.head_dim, turned.v + at, kKvBlock);
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
