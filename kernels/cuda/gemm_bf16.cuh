// Shared by the two forms of bfloat16 products. Every output is a sequence of mma.m16n8k16 over
// ascending k, 16 steps at a time, padded with zeros. So its bits depend neither on the form nor on
// its place in a tile. How the 16 products inside an mma are summed is up to the tensor core.
#pragma once

#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/primitives.cuh"

namespace troupe::kernels::cuda {

// A pair of numbers of A as the product uses them: flushes denormals to zero, then rounds to
// nearest.
__device__ inline std::uint32_t rounded_pair(float low, float high) {
  const auto flushed = [](float x) { return (__float_as_uint(x) & 0x7f800000u) == 0 ? 0.0f : x; };
  return pair_of_bf16(flushed(low), flushed(high));
}

// A lane's place in the fragments. Of A it has rows `row` and row + 8, and k pairs `column` and
// column + 4. Of B it has the same k pairs of column `row`. Of C it has columns 2 `column` and 2
// `column` + 1 of its two rows.
struct FragmentPlace {
  int row, column;
  __device__ FragmentPlace()
      : row(static_cast<int>(threadIdx.x) % 32 / 4), column(static_cast<int>(threadIdx.x) % 4) {}
};

// Calls `each` for those of the lane's four outputs that lie inside the part; the fragment starts
// at row m and column n.
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
