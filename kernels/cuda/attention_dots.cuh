// Chains over the dimensions of keys that lie in shared memory as fetch_blocks leaves them.
#pragma once

#include "kernels/cuda/attention_keys.cuh"
#include "kernels/cuda/together.cuh"

namespace troupe::kernels::cuda {

// The products of one key with one or two heads' queries, side by side.
template <int kHeads>
__device__ inline void dots(const float* const (&q)[kHeads],
                            const float* k,
                            int head_dim,
                            float (&dot)[kHeads]) {
#pragma unroll
  for (int head = 0; head < kHeads; ++head)
    dot[head] = 0.0f;
  int d = 0;
#pragma unroll 4
  for (; d + 4 <= head_dim; d += 4) {
    float x[kHeads][4];
#pragma unroll
    for (int head = 0; head < kHeads; ++head)
      read_together(q[head] + d, x[head]);
    const float key[4] = {k[d * kKvBlock], k[(d + 1) * kKvBlock], k[(d + 2) * kKvBlock],
                          k[(d + 3) * kKvBlock]};
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int head = 0; head < kHeads; ++head)
        dot[head] = __fmaf_rn(x[head][i], key[i], dot[head]);
  }
  for (; d < head_dim; ++d)
#pragma unroll
    for (int head = 0; head < kHeads; ++head)
      dot[head] = __fmaf_rn(q[head][d], k[d * kKvBlock], dot[head]);
}

// Floats of a head's query in shared memory: whole fours.
constexpr std::int64_t query_floats(std::int64_t head_dim) {
  return (head_dim + 3) / 4 * 4;
}

// One row's queries of an item in shared memory.
struct RowQueries {
  float* q;
  int row_floats;

  __device__ RowQueries(float* to, int head_dim)
      : q(to), row_floats(static_cast<int>(query_floats(head_dim))) {}
  __device__ const float* of(int head) const { return q + head * row_floats; }
  // All of the block's threads call it.
  __device__ void load(const Attention& a, const ItemView& item) const {
    const int head_dim = static_cast<int>(a.head_dim);
    for (int i = static_cast<int>(threadIdx.x); i < item.heads * head_dim;
         i += static_cast<int>(blockDim.x))
      q[i / head_dim * row_floats + i % head_dim] =
          a.q[item.first_row * a.ldq + item.first_head * head_dim + i];
  }
};

// The products of the block's 256 threads' keys [from, to) of 64 in `k` with all heads: gives
// `take(head, key, product)` each.
template <class Take>
__device__ inline void products_of_tile(const RowQueries& queries,
                                        const float* k,
                                        int head_dim,
                                        int heads,
                                        int from,
                                        int to,
                                        const Take& take) {
  const int me = static_cast<int>(threadIdx.x), key = me % kKeys;
  const float* const mine = k + key / static_cast<int>(kKvBlock) * key_stride(head_dim) +
                            key % static_cast<int>(kKvBlock);
  for (int head = me / kKeys; head < heads && from <= key && key < to; head += 8) {
    const int next = head + 4;
    if (next < heads) {
      float dot[2];
      dots<2>({queries.of(head), queries.of(next)}, mine, head_dim, dot);
      take(head, key, dot[0]);
      take(next, key, dot[1]);
    } else {
      float dot[1];
      dots<1>({queries.of(head)}, mine, head_dim, dot);
      take(head, key, dot[0]);
    }
  }
}

}  // namespace troupe::kernels::cuda
