// What a warp of attention_splits.cu does with a tile of 16 queries and one of 64 keys: scores,
// weights, and the sums of weighted values, by mma.m16n8k16 (docs/adr/0019-attention-in-splits.md).
#pragma once

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/split_merge.cuh"

namespace troupe::kernels::cuda::splits {

inline constexpr int kKeySteps = kKeys / 16;  // steps of k in a product with values
inline constexpr std::uint32_t kOnes = 0x3f803f80u;

// A lane's two queries of a tile, `lane / 4` and 8 more; none if `end` is 0.
struct LaneQuery {
  int first = 0, end = 0;  // the keys that it sees
  int query = 0;           // of the item
  Softmax now, all;        // of this split; of the earlier ones
  float alpha = 1.0f;      // factor for earlier tiles of this split

  __device__ LaneQuery() {}
  __device__ LaneQuery(const Attention& a, const ItemView& item, int which)
      : end(static_cast<int>(item.keys) + which / item.heads), query(which) {
    first = static_cast<int>(first_key(end, a.window));
  }
  __device__ bool sees(int begin, int count) const { return begin < end && begin + count > first; }
};

// kShare warps have one tile of queries in common. The warp's part of the outputs are the
// dimensions from 16 * `pair` on.
template <int kDim, int kShare>
struct Tile {
  static constexpr int kPairs = kDim / 16 / kShare;  // of fragments
  LaneQuery query[2];
  float out[kPairs * 2][4], sum[4];
  int pair;

  __device__ void start_split() {
    query[0].now = query[1].now = Softmax();
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < kPairs * 2; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        out[j][i] = 0.0f;
  }
};

// The products of 16 queries with kCount * 16 keys from `key` on, one chain over the dimensions
// each.
template <int kCount>
__device__ void dots(
    const Head& head, const uint4* q, const uint4* keys, int key, float (*score)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < kCount * 2; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      score[j][i] = 0.0f;
#pragma unroll 2
  for (int step = 0; step < head.steps; ++step) {
    std::uint32_t x[4];
    load_matrices<false>(x, q + lane % 16 * head.stride + step * 2 + lane / 16);
    const uint4* const row = keys + (step * 16 + lane % 16) * kKeyStride + key / 8 + lane / 16;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      std::uint32_t y[4];
      load_matrices<true>(y, row + j * 2);
      const std::uint32_t y0[2] = {y[0], y[1]}, y1[2] = {y[2], y[3]};
      mma_bf16(score[2 * j], x, y0);
      mma_bf16(score[2 * j + 1], x, y1);
    }
  }
}

// Turns the products of the lane's queries with the keys of a tile into weights.
__device__ inline void weigh(const Attention& a,
                             int tile,
                             LaneQuery (&query)[2],
                             float (&score)[kKeyPieces][4]) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    LaneQuery& mine = query[half];
    const auto sees = [&](int j, int i) {
      const int key = tile + j * 8 + column + i;
      return mine.first <= key && key < mine.end;
    };
    float best = -infinity();
#pragma unroll
    for (int j = 0; j < kKeyPieces; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = score[j][half * 2 + i];
        x = scored(a, x);
        best = sees(j, i) ? larger(x, best) : best;
      }
    best = larger(__shfl_xor_sync(kAllLanes, best, 1), best);
    best = larger(__shfl_xor_sync(kAllLanes, best, 2), best);
    const bool any = mine.sees(tile, kKeys);
    const float max = larger(best, mine.now.max);
    mine.alpha = any ? exp_f32(mine.now.max - max) : 1.0f;
    mine.now.max = any ? max : mine.now.max;
#pragma unroll
    for (int j = 0; j < kKeyPieces; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = score[j][half * 2 + i];
        x = sees(j, i) ? exp_f32(x - max) : 0.0f;
      }
  }
}

// Adds the weighted values of a tile, and the weights.
template <int kDim, int kShare>
__device__ void add_values(const Head& head,
                           const uint4* values,
                           const float (&weight)[kKeyPieces][4],
                           Tile<kDim, kShare>& tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto scale = [&](float(&x)[4]) {
    x[0] = x[0] * tile.query[0].alpha, x[1] = x[1] * tile.query[0].alpha;
    x[2] = x[2] * tile.query[1].alpha, x[3] = x[3] * tile.query[1].alpha;
  };
  scale(tile.sum);
#pragma unroll
  for (int j = 0; j < Tile<kDim, kShare>::kPairs * 2; ++j)
    scale(tile.out[j]);
#pragma unroll
  for (int step = 0; step < kKeySteps; ++step) {
    const float(*const w)[4] = &weight[2 * step];
    const std::uint32_t x[4] = {pair_of_bf16(w[0][0], w[0][1]), pair_of_bf16(w[0][2], w[0][3]),
                                pair_of_bf16(w[1][0], w[1][1]), pair_of_bf16(w[1][2], w[1][3])};
    const std::uint32_t ones[2] = {kOnes, kOnes};
    mma_bf16(tile.sum, x, ones);
    const uint4* const row = values + (step * 16 + lane % 16) * head.stride + lane / 16;
#pragma unroll
    for (int j = 0; j < Tile<kDim, kShare>::kPairs; ++j) {
      if (tile.pair + j >= head.steps) break;
      std::uint32_t y[4];
      load_matrices<true>(y, row + (tile.pair + j) * 2);
      const std::uint32_t y0[2] = {y[0], y[1]}, y1[2] = {y[2], y[3]};
      mma_bf16(tile.out[2 * j], x, y0);
      mma_bf16(tile.out[2 * j + 1], x, y1);
    }
  }
}

// Calls `each(d, sum)` for a half's outputs that the warp has.
template <int kDim, int kShare, class Each>
__device__ void for_outputs(const Head& head,
                            Tile<kDim, kShare>& tile,
                            int half,
                            const Each& each) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int j = 0; j < Tile<kDim, kShare>::kPairs * 2; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int d = tile.pair * 16 + j * 8 + column + i;
      if (d < head.dim) each(d, tile.out[j][half * 2 + i]);
    }
}

}  // namespace troupe::kernels::cuda::splits
