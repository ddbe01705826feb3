// Shared by the kernels for matrix products (kernels/shapes.hpp: Gemm) on a device. gemm.cu chooses
// between few rows (gemm_rows.cu), many rows (gemm_tile.cu), and products of bfloat16 on tensor
// cores (gemm_bf16.cuh). All pointers are device pointers; the host reads only
// the sizes and the pointers' values.
#pragma once

#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/together.cuh"

#include <cuda_runtime.h>

namespace troupe::kernels::cuda {

// The number of multiprocessors that products are tuned for: that of an H100 or H200. The bits do
// not depend on it.
inline constexpr std::int64_t kMultiprocessors = 132;

// A product and the part of it to compute.
struct GemmPart {
  Gemm g;
  std::int64_t m_begin = 0, m_end = 0;
  std::int64_t panel_begin = 0, panel_end = 0;
  bool a_vectors = false;  // 4 numbers of A (along k; along m if by columns) can be read at once
  bool b_vectors = false;  // the same for plain B
  bool c_vectors = false;  // 4 columns of C, bias and residual can be touched at once

  constexpr std::int64_t rows() const { return m_end - m_begin; }
  constexpr std::int64_t panels() const { return panel_end - panel_begin; }
  // Where the part's columns end: the last panel may reach beyond those of C.
  constexpr std::int64_t column_end() const {
    return panel_end * kPanel < g.n ? panel_end * kPanel : g.n;
  }
};

// The few-rows form streams packed panels past some rows at a time, with A by rows.
void gemm_few_rows(const GemmPart& part);
void gemm_tiles(const GemmPart& part);
void gemm_bf16(const GemmPart& part);
// Up to this many rows the few-rows form is fastest. The second number applies if there are too few
// tiles of 128 x 128 for all multiprocessors.
inline constexpr std::int64_t kFewRows = 64, kFewRowsOfSmall = 192;
inline constexpr std::int64_t kFewRowsBf16 = 64, kFewRowsOfSmallBf16 = 128;
constexpr bool enough_tiles(std::int64_t rows,
                            std::int64_t columns,
                            std::int64_t m,
                            std::int64_t n) {
  return (rows + m - 1) / m * ((columns + n - 1) / n) >= kMultiprocessors * 9 / 10;
}

// The value from which the chain of an output starts.
__device__ inline float chain_start(const Gemm& g, std::int64_t m, std::int64_t n) {
  return g.accumulate ? g.c[m * g.ldc + n] : 0.0f;
}
// Ends a chain: multiplies by the scale of an int8 column, then adds bias and residual.
__device__ inline void chain_end(const Gemm& g, std::int64_t m, std::int64_t n, float sum) {
  if (g.b.scale != nullptr) sum = sum * g.b.scale[n];
  if (g.bias != nullptr) sum = sum + g.bias[n];
  if (g.residual != nullptr) sum = sum + g.residual[m * g.ldr + n];
  g.c[m * g.ldc + n] = sum;
}
// Ends the chains of two or four columns of packed bfloat16 from n on, each row's in one access.
template <int kCount>
__device__ inline void chain_end(const Gemm& g,
                                 std::int64_t m,
                                 std::int64_t n,
                                 float (&sum)[kCount]) {
  const auto add = [&](const float* from) {
    float more[kCount];
    read_together(from, more);
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      sum[i] = sum[i] + more[i];
  };
  if (g.bias != nullptr) add(g.bias + n);
  if (g.residual != nullptr) add(g.residual + m * g.ldr + n);
  write_together(g.c + m * g.ldc + n, sum);
}

}  // namespace troupe::kernels::cuda
