// What a warp of attention_splits.cu does with a tile of 16 queries and one of 64 keys: scores,
// weights, and the sums of weighted values, by mma.m16n8k16 (docs/adr/0019-attention-in-splits.md).
#pragma once

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/split_merge.cuh"

namespace troupe::kernels::cuda::splits {

inline constexpr int kKeySteps = kKeys / 16;  // steps of k in a product with values
inline constexpr std::uint32_t kOnes = 0x3f803f80u;

// Query lane / 4, or lane / 4 + 8, of a tile; unused while `end` is 0.
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
  __device__ bool sees_all(int begin, int count) const {
    return first <= begin && begin + count <= end;
  }
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

// Scales the products. All soft caps are in one place, so that a model without one runs past them
// at once: they are most of the kernel's instructions.
template <int kCount>
__device__ void scale_scores(const Attention& a, float (&score)[kCount][4]) {
#pragma unroll
  for (int j = 0; j < kCount; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      score[j][i] = score[j][i] * a.scale;
  if (!(a.softcap > 0.0f)) return;
#pragma unroll
  for (int j = 0; j < kCount; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      score[j][i] = capped(a, score[j][i]);
}

// Which of the keys that a lane has in its fragments a query sees. The keys begin at `begin`.
struct Sight {
  int first, end;  // keys, counted from the lane's first
  __device__ Sight(const LaneQuery& query, int begin)
      : first(query.first - begin - static_cast<int>(threadIdx.x) % 4 * 2),
        end(query.end - begin - static_cast<int>(threadIdx.x) % 4 * 2) {}
  __device__ bool sees(int j, int i) const { return first <= j * 8 + i && j * 8 + i < end; }
};

// The largest of a query's scores, over all lanes that have some; `kAll`: it sees all of the keys.
template <bool kAll, int kCount>
__device__ float largest(const float (&score)[kCount][4], int half, const Sight& sight) {
  float best = -infinity();
#pragma unroll
  for (int j = 0; j < kCount; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      best = kAll || sight.sees(j, i) ? larger(score[j][half * 2 + i], best) : best;
  best = larger(__shfl_xor_sync(kAllLanes, best, 1), best);
  return larger(__shfl_xor_sync(kAllLanes, best, 2), best);
}

// Turns a query's scores into weights. `any`: whether it sees a key of the tile, whose largest
// score is `best`.
template <bool kAll, int kCount>
__device__ void turn_to_weights(
    float (&score)[kCount][4], int half, const Sight& sight, bool any, float best, LaneQuery& query) {
  const float max = larger(best, query.now.max);
  query.alpha = any ? exp_f32(query.now.max - max) : 1.0f;
  query.now.max = any ? max : query.now.max;
#pragma unroll
  for (int j = 0; j < kCount; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float& x = score[j][half * 2 + i];
      x = kAll || sight.sees(j, i) ? exp_f32(x - max) : 0.0f;
    }
}

// Turns the products of the lane's queries with the keys of a tile into weights.
template <bool kAll>
__device__ void weigh_tile(int tile, LaneQuery (&query)[2], float (&score)[kKeyPieces][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Sight sight(query[half], tile);
    turn_to_weights<kAll>(score, half, sight, query[half].sees(tile, kKeys),
                          largest<kAll>(score, half, sight), query[half]);
  }
}
__device__ inline void weigh(const Attention& a,
                             int tile,
                             LaneQuery (&query)[2],
                             float (&score)[kKeyPieces][4]) {
  scale_scores(a, score);
  const bool all = query[0].sees_all(tile, kKeys) && query[1].sees_all(tile, kKeys);
  if (__all_sync(kAllLanes, all))
    weigh_tile<true>(tile, query, score);
  else
    weigh_tile<false>(tile, query, score);
}

// Adds the weighted values of a tile, and the weights. `weights(step, x)` gives the fragment of the
// 16 keys of a step. `kHalves`: 1 if there is no query in the second half of the tile.
template <int kHalves, int kDim, int kShare, class Weights>
__device__ void add_values(const Head& head,
                           const uint4* values,
                           const Weights& weights,
                           Tile<kDim, kShare>& tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto scale = [&](float(&x)[4]) {
    x[0] = x[0] * tile.query[0].alpha, x[1] = x[1] * tile.query[0].alpha;
    if (kHalves == 1) return;
    x[2] = x[2] * tile.query[1].alpha, x[3] = x[3] * tile.query[1].alpha;
  };
  scale(tile.sum);
#pragma unroll
  for (int j = 0; j < Tile<kDim, kShare>::kPairs * 2; ++j)
    scale(tile.out[j]);
#pragma unroll
  for (int step = 0; step < kKeySteps; ++step) {
    std::uint32_t x[4];
    weights(step, x);
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
// The weights that the warp itself has, in the layout of its scores.
struct OwnWeights {
  const float (&score)[kKeyPieces][4];
  __device__ void operator()(int step, std::uint32_t (&x)[4]) const {
    const float(*const w)[4] = &score[2 * step];
    x[0] = pair_of_bf16(w[0][0], w[0][1]), x[1] = pair_of_bf16(w[0][2], w[0][3]);
    x[2] = pair_of_bf16(w[1][0], w[1][1]), x[3] = pair_of_bf16(w[1][2], w[1][3]);
  }
};

// What warps that have a tile of queries in common tell each other: the largest scores of each
// warp's keys, then weights in bfloat16, in rows of kKeyStride pieces.
template <int kShare>
struct SharedWeights {
  static constexpr int kPieces = kQueries * kKeyStride + kShare * kQueries / 4;  // of 16 bytes
  uint4* data;

  // The largest score of the keys of a warp, of query `row`.
  __device__ float& best(int part, int row) const {
    return reinterpret_cast<float*>(data + kQueries * kKeyStride)[part * kQueries + row];
  }
  // The rows of the second half of the tile, where it has no query.
  __device__ void zero_second_half() const {
    constexpr int kSecond = kQueries / 2 * kKeyStride;
    for (int i = static_cast<int>(threadIdx.x); i < kSecond; i += static_cast<int>(blockDim.x))
      data[kSecond + i] = make_uint4(0, 0, 0, 0);
  }
  // The packed pair of keys `key` and `key` + 1.
  __device__ std::uint32_t& pair(int row, int key) const {
    return reinterpret_cast<std::uint32_t*>(data)[row * kKeyStride * 4 + key / 2];
  }
  __device__ void operator()(int step, std::uint32_t (&x)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    load_matrices<false>(x, data + lane % 16 * kKeyStride + step * 2 + lane / 16);
  }
};

// Like `weigh`, for warps that share a tile: each has the products of kCount * 8 keys from
// key `part` * kCount * 8 on, and leaves their weights in `to`. All threads of the block call it.
template <bool kAll, int kHalves, int kShare, int kCount>
__device__ void weigh_part(int tile,
                           int part,
                           float (&score)[kCount][4],
                           const SharedWeights<kShare>& to,
                           LaneQuery (&query)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, key = part * kCount * 8;
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    const float best = largest<kAll>(score, half, Sight(query[half], tile + key));
    if (lane % 4 == 0) to.best(part, lane / 4 + half * 8) = best;
  }
  __syncthreads();
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    const int row = lane / 4 + half * 8;
    float best = to.best(0, row);
#pragma unroll
    for (int other = 1; other < kShare; ++other)
      best = larger(to.best(other, row), best);
    turn_to_weights<kAll>(score, half, Sight(query[half], tile + key),
                          query[half].sees(tile, kKeys), best, query[half]);
#pragma unroll
    for (int j = 0; j < kCount; ++j)
      to.pair(row, key + j * 8 + lane % 4 * 2) =
          pair_of_bf16(score[j][half * 2], score[j][half * 2 + 1]);
  }
  __syncthreads();
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
