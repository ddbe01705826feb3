// Shared by the forms of bfloat16 products. Every output is a sequence of mma.m16n8k16 over
// ascending k, 16 steps at a time, padded with zeros. So its bits depend neither on the form nor on
// its place in a tile. kernels/tensor_core.hpp says what an mma is.
#pragma once

#include "kernels/cuda/bf16.cuh"
#include "kernels/cuda/gemm.cuh"

namespace troupe::kernels::cuda {

// Rows of A rounded to bfloat16 before a product, in the device's workspace. Beyond k they are
// zero.
struct RoundedRows {
  const std::uint16_t* data = nullptr;
  std::int64_t ld = 0;  // a multiple of kRoundedStep
};
inline constexpr std::int64_t kRoundedStep = 32;

// At most this many rows take their f32 numbers with them and round them as they are read: a kernel
// before the product would cost more.
inline constexpr std::int64_t kRowsAsTheyAre = 8;

// `a`: the part's rows, from its first on.
void gemm_bf16_few_rows(const GemmPart& part, const RoundedRows& a);
void gemm_bf16_few_rows(const GemmPart& part);  // at most kRowsAsTheyAre
void gemm_bf16_tiles(const GemmPart& part, const RoundedRows& a);

// A lane's place in the fragments. Of A it has rows `row` and row + 8, and k pairs `column` and
// column + 4. Of B it has the same k pairs of column `row`. Of C it has columns 2 `column` and 2
// `column` + 1 of its two rows.
struct FragmentPlace {
  int row, column;
  __device__ FragmentPlace()
      : row(static_cast<int>(threadIdx.x) % 32 / 4), column(static_cast<int>(threadIdx.x) % 4) {}
};

// J fragments of C side by side, dealt out column by column: column i of fragment j is column J * i
// + j of the 8 J. A lane then reads J adjacent words of a line of B at once, and its outputs of a
// row are 2 J adjacent numbers. sum[j] is fragment j.
template <int J>
__device__ inline float& output_of(float (*sum)[4], int half, int i) {
  return sum[i % J][half * 2 + i / J];
}

// Sets the sums to where their chains start. The fragments begin at row m and column n.
template <int J>
__device__ inline void start_fragments(const GemmPart& p,
                                       const FragmentPlace& place,
                                       std::int64_t m,
                                       std::int64_t n,
                                       float (*sum)[4]) {
  const std::int64_t n_end = p.column_end();
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < 2 * J; ++i) {
      const std::int64_t row = m + place.row + half * 8, column = n + place.column * 2 * J + i;
      output_of<J>(sum, half, i) =
          p.g.accumulate && row < p.m_end && column < n_end ? chain_start(p.g, row, column) : 0.0f;
    }
}
template <int J>
__device__ inline void end_fragments(const GemmPart& p,
                                     const FragmentPlace& place,
                                     std::int64_t m,
                                     std::int64_t n,
                                     float (*sum)[4]) {
  const std::int64_t n_end = p.column_end();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = m + place.row + half * 8;
    if (row >= p.m_end) continue;
    constexpr int kAtOnce = J == 1 ? 2 : 4;
#pragma unroll
    for (int i = 0; i < 2 * J; i += kAtOnce) {
      const std::int64_t column = n + place.column * 2 * J + i;
      float x[kAtOnce];
#pragma unroll
      for (int at = 0; at < kAtOnce; ++at)
        x[at] = output_of<J>(sum, half, i + at);
      if (p.c_vectors && column + kAtOnce <= n_end) {
        chain_end(p.g, row, column, x);
      } else {
#pragma unroll
        for (int at = 0; at < kAtOnce; ++at)
          if (column + at < n_end) chain_end(p.g, row, column + at, x[at]);
      }
    }
  }
}

}  // namespace troupe::kernels::cuda
