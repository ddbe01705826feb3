// What the two forms of products of bfloat16 share. Every output is one mma.m16n8k16 after another
// over k ascending, 16 at a time, what is missing of the last 16 being zeros; so its bits depend
// neither on the form nor on its place in a tile. The sum of 16 products inside an mma is the
// tensor core's.
#pragma once

#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/primitives.cuh"

namespace troupe::kernels::cuda {

// Two numbers of A as the product sees them: denormals count as zero, then to nearest.
__device__ inline std::uint32_t rounded_pair(float low, float high) {
  const auto flushed = [](float x) { return (__float_as_uint(x) & 0x7f800000u) == 0 ? 0.0f : x; };
  return pair_of_bf16(flushed(low), flushed(high));
}

// A lane's place in the fragments: it has rows `row` and row + 8 and k pairs `column` and column +
// 4 of A; of B these pairs of column `row`; of C columns 2 `column` and + 1 of its rows.
struct FragmentPlace {
  int row, column;
  __device__ FragmentPlace()
      : row(static_cast<int>(threadIdx.x) % 32 / 4), column(static_cast<int>(threadIdx.x) % 4) {}
};

// The lane's four outputs of a fragment whose first row and column are (m, n), where they are
// inside of the part.
template <class Each>
__device__ inline void for_fragment(const GemmPart& p,
                                    const FragmentPlace& place,
                                    std::int64_t m,
                                    std::int64_t n,
                                    float (&sum)[4],
                                    const Each& each) {
  const std::int64_t whole = p.panel_end * kPanel, n_end = whole < p.g.n ? whole : p.g.n;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t row = m + place.row + i / 2 * 8, column = n + place.column * 2 + i % 2;
    if (row < p.m_end && column < n_end) each(row, column, sum[i]);
  }
}
__device__ inline void start_fragment(const GemmPart& p,
                                      const FragmentPlace& place,
                                      std::int64_t m,
                                      std::int64_t n,
                                      float (&sum)[4]) {
  sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
  if (p.g.accumulate)
    for_fragment(p, place, m, n, sum, [&](std::int64_t row, std::int64_t column, float& x) {
      x = chain_start(p.g, row, column);
    });
}
__device__ inline void end_fragment(const GemmPart& p,
                                    const FragmentPlace& place,
                                    std::int64_t m,
                                    std::int64_t n,
                                    float (&sum)[4]) {
  for_fragment(p, place, m, n, sum, [&](std::int64_t row, std::int64_t column, float x) {
    chain_end(p.g, row, column, x);
  });
}

}  // namespace troupe::kernels::cuda
