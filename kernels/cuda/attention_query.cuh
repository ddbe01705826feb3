// Work on a tile of query rows that both kernels of attention_backward.cu share. A "query" is one
// row with one of the heads that share the unit's kv head. Query i of a segment is row i / group,
// head i % group, so ascending queries have the order in which the reference adds.
#pragma once

#include "kernels/cuda/bf16.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/shapes.hpp"

namespace troupe::kernels::cuda {

// Padding in floats of a row in shared memory, so that 8 rows lie in different banks.
inline constexpr int kRowPad = 4;

struct UnitView {
  const AttentionBackward& b;
  int kv_head, group;

  __device__ UnitView(const AttentionBackward& backward, int head)
      : b(backward),
        kv_head(head),
        group(static_cast<int>(backward.forward.heads / backward.forward.kv_heads)) {}

  __device__ std::int64_t row(const Segment& segment, int query) const {
    return segment.first_row + query / group;
  }
  __device__ int head(int query) const { return kv_head * group + query % group; }
  // The number of keys up to and including the query's own position.
  __device__ int keys(const Segment& segment, int query) const {
    return segment.first_position + query / group + 1;
  }
  // The first of them that the query sees.
  __device__ int first_of(int keys) const {
    return static_cast<int>(first_key(keys, b.forward.window));
  }
  // The offset in floats of the kv head's keys (or values) of a pool block.
  __device__ std::int64_t pool_at(std::int64_t block) const {
    return (block * b.forward.kv_heads + kv_head) * b.forward.head_dim * kKvBlock;
  }
};

// Indices in a segment's table of the blocks that its rows see: [first, last].
struct UsedBlocks {
  int first, last;
  __device__ UsedBlocks(const Segment& segment, std::int64_t window)
      : first(static_cast<int>(first_key(segment.first_position + 1, window) / kKvBlock)),
        last(segment.rows > 0
                 ? static_cast<int>((segment.first_position + segment.rows - 1) / kKvBlock)
                 : first - 1) {}
};

// Copies q and dout of `count` queries from `first` on to shared rows of kWidth numbers, and their
// D and log-sum-exp. Fills further rows up to kQueries with zeros. All kThreads threads must call
// it.
template <int kThreads, int kQueries, int kWidth>
__device__ void load_queries(const UnitView& unit,
                             const Segment& segment,
                             int first,
                             int count,
                             float* q,
                             float* dout,
                             float* delta,
                             float* lse) {
  const Attention& a = unit.b.forward;
  const int thread = static_cast<int>(threadIdx.x);
  const int dim = static_cast<int>(a.head_dim);
  const bool rounds = a.k_pool.dtype == KvDtype::kBf16;  // as the forward pass does
  for (int i = thread / 32; i < kQueries; i += kThreads / 32) {
    const std::int64_t row = unit.row(segment, first + i), head = unit.head(first + i);
    const float* const from = a.q + row * a.ldq + head * dim;
    const float* const grad = unit.b.dout + row * unit.b.lddo + head * dim;
    for (int d = thread % 32; d < dim; d += 32) {
      const float x = i < count ? from[d] : 0.0f;
      q[i * kWidth + d] = rounds ? rounded_to_bf16(x) : x;
      dout[i * kWidth + d] = i < count ? grad[d] : 0.0f;
    }
  }
  const int lane = thread % kLanes;
  for (int i = thread / kLanes; i < kQueries; i += kThreads / kLanes) {
    const std::int64_t row = unit.row(segment, first + i), head = unit.head(first + i);
    const float* const out = a.out + row * a.ldo + head * dim;
    const float* const grad = unit.b.dout + row * unit.b.lddo + head * dim;
    float sum = 0.0f;
    for (int d = i < count ? lane : dim; d < dim; d += kLanes)
      sum = __fmaf_rn(grad[d], out[d], sum);
    sum = lanes_sum(sum);
    if (lane != 0) continue;
    delta[i] = sum;
    lse[i] = i < count ? a.lse[row * a.heads + head] : 0.0f;
  }
}

// Copies a block of 16 keys and values to shared rows of kWidth numbers.
template <int kThreads, int kWidth>
__device__ void load_block(const UnitView& unit, std::int64_t block, float* keys, float* values) {
  const Attention& a = unit.b.forward;
  const int dim = static_cast<int>(a.head_dim), slots = static_cast<int>(kKvBlock);
  const int thread = static_cast<int>(threadIdx.x);
  const auto copy = [&](const auto* k, const auto* v) {
    for (int i = thread; i < dim * slots; i += kThreads)
      keys[i % slots * kWidth + i / slots] = as_float(k[i]);
    for (int key = thread / 32; key < slots; key += kThreads / 32)
      for (int d = thread % 32; d < dim; d += 32)
        values[key * kWidth + d] = as_float(v[key * dim + d]);
  };
  const std::int64_t first = unit.pool_at(block);
  if (a.k_pool.dtype == KvDtype::kF32)
    copy(static_cast<const float*>(a.k_pool.data) + first,
         static_cast<const float*>(a.v_pool.data) + first);
  else
    copy(static_cast<const std::uint16_t*>(a.k_pool.data) + first,
         static_cast<const std::uint16_t*>(a.v_pool.data) + first);
}

// Chains over the head dimension for kQ queries (every kStepQ-th row from `q` on) and kK keys: dot
// = q k, dp = dout v.
template <int kQ, int kK, int kStepQ, int kStepK, int kWidth>
__device__ void dots(int dim,
                     const float* q,
                     const float* dout,
                     const float* keys,
                     const float* values,
                     float (&dot)[kQ][kK],
                     float (&dp)[kQ][kK]) {
#pragma unroll
  for (int i = 0; i < kQ; ++i)
#pragma unroll
    for (int j = 0; j < kK; ++j)
      dot[i][j] = dp[i][j] = 0.0f;
  const auto chain = [](const float4& x, const float4& y, float sum) {
    sum = __fmaf_rn(x.x, y.x, sum);
    sum = __fmaf_rn(x.y, y.y, sum);
    sum = __fmaf_rn(x.z, y.z, sum);
    return __fmaf_rn(x.w, y.w, sum);
  };
  const auto product = [&](const float* rows, const float* columns, int d, float(&out)[kQ][kK]) {
    float4 x[kQ], y[kK];
#pragma unroll
    for (int i = 0; i < kQ; ++i)
      x[i] = *reinterpret_cast<const float4*>(rows + i * kStepQ * kWidth + d);
#pragma unroll
    for (int j = 0; j < kK; ++j)
      y[j] = *reinterpret_cast<const float4*>(columns + j * kStepK * kWidth + d);
#pragma unroll
    for (int i = 0; i < kQ; ++i)
#pragma unroll
      for (int j = 0; j < kK; ++j)
        out[i][j] = chain(x[i], y[j], out[i][j]);
  };
  int d = 0;
#pragma unroll 1
  for (; d + 4 <= dim; d += 4) {
    product(q, keys, d, dot);
    product(dout, values, d, dp);
  }
#pragma unroll 1
  for (; d < dim; ++d)
#pragma unroll
    for (int i = 0; i < kQ; ++i)
#pragma unroll
      for (int j = 0; j < kK; ++j) {
        dot[i][j] = __fmaf_rn(q[i * kStepQ * kWidth + d], keys[j * kStepK * kWidth + d], dot[i][j]);
        dp[i][j] =
            __fmaf_rn(dout[i * kStepQ * kWidth + d], values[j * kStepK * kWidth + d], dp[i][j]);
      }
}

// The weight of a key and the gradient of its score.
struct Weight {
  float p, ds;
};
__device__ inline Weight weight_of(
    const Attention& a, float dot, float dp, float delta, float lse) {
  const float score = dot * a.scale;
  const float centred = dp - delta;
  if (a.softcap > 0.0f) {
    const float t = tanh_f32(score / a.softcap);
    const float p = exp_f32(a.softcap * t - lse);
    return {p, ((p * centred) * __fmaf_rn(-t, t, 1.0f)) * a.scale};
  }
  const float p = exp_f32(score - lse);
  return {p, (p * centred) * a.scale};
}

}  // namespace troupe::kernels::cuda
