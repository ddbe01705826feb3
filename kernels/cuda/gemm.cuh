// Products of matrices (kernels/shapes.hpp: Gemm) on a device: what its three forms share. gemm.cu
// chooses: few rows (gemm_rows.cu), many rows (gemm_tile.cu), and products of bfloat16 on tensor
// cores (gemm_bf16.cu). All pointers belong to the device; only the sizes and the pointers
// themselves are looked at on the host.
#pragma once

#include "kernels/cuda/ops.cuh"

#include <cuda_runtime.h>

namespace troupe::kernels::cuda {

// Multiprocessors that a product is cut for: that of an H100 or H200. Its bits do not depend on it.
inline constexpr std::int64_t kMultiprocessors = 132;

// A product and the part of it that is wanted.
struct GemmPart {
  Gemm g;
  std::int64_t m_begin = 0, m_end = 0;
  std::int64_t panel_begin = 0, panel_end = 0;
  bool a_vectors = false;  // 4 numbers of A (along k, or along m by columns) may be read at once
  bool b_vectors = false;  // of B as it lies

  std::int64_t rows() const { return m_end - m_begin; }
  std::int64_t panels() const { return panel_end - panel_begin; }
};

// Streams packed panels past some rows at a time; A by rows.
void gemm_few_rows(const GemmPart& part);
void gemm_tiles(const GemmPart& part);
void gemm_bf16_few_rows(const GemmPart& part);
void gemm_bf16_tiles(const GemmPart& part);
// Rows up to which the form for few rows is the fastest; up to the second number, where tiles of
// 128 by 128 are too few for all multiprocessors.
inline constexpr std::int64_t kFewRows = 64, kFewRowsOfSmall = 192;
inline constexpr std::int64_t kFewRowsBf16 = 64, kFewRowsOfSmallBf16 = 128;
constexpr bool enough_tiles(std::int64_t rows,
                            std::int64_t columns,
                            std::int64_t m,
                            std::int64_t n) {
  return (rows + m - 1) / m * ((columns + n - 1) / n) >= kMultiprocessors * 9 / 10;
}

// What the chain of an output starts from.
__device__ inline float chain_start(const Gemm& g, std::int64_t m, std::int64_t n) {
  return g.accumulate ? g.c[m * g.ldc + n] : 0.0f;
}
// The end of a chain: times the scale of an int8 column, + bias, + residual.
__device__ inline void chain_end(const Gemm& g, std::int64_t m, std::int64_t n, float sum) {
  if (g.b.scale != nullptr) sum = sum * g.b.scale[n];
  if (g.bias != nullptr) sum = sum + g.bias[n];
  if (g.residual != nullptr) sum = sum + g.residual[m * g.ldr + n];
  g.c[m * g.ldc + n] = sum;
}

}  // namespace troupe::kernels::cuda
