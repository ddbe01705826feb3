// Products of bfloat16: rounds the rows of A into the device's workspace, as many as it holds at a
// time, and multiplies them. A row is rounded once; the product then reads half the bytes, again
// and again from L2, which the workspace does not exceed.
#include "kernels/cuda/gemm_bf16.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kNumbers = 8;  // that a thread rounds

// Numbers beyond k become zero.
__global__ void __launch_bounds__(kThreads)
    round_kernel(GemmPart p, std::uint16_t* to, std::int64_t ld) {
  const std::int64_t pieces = ld / kNumbers;
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= p.rows() * pieces) return;
  const std::int64_t row = p.m_begin + at / pieces, k = at % pieces * kNumbers;
  const std::int64_t left = p.g.k - k;
  float x[kNumbers];
  if (p.a_vectors && !p.g.a_by_columns && left >= kNumbers) {
    const float* const from = p.g.a + row * p.g.lda + k;
    *reinterpret_cast<float4*>(x) = *reinterpret_cast<const float4*>(from);
    *reinterpret_cast<float4*>(x + 4) = *reinterpret_cast<const float4*>(from + 4);
  } else {
    const std::int64_t step = p.g.a_by_columns ? p.g.lda : 1;
    const float* const from = p.g.a_by_columns ? p.g.a + k * step + row : p.g.a + row * p.g.lda + k;
#pragma unroll
    for (int i = 0; i < kNumbers; ++i)
      x[i] = i < left ? from[i * step] : 0.0f;
  }
  *reinterpret_cast<uint4*>(to + (row - p.m_begin) * ld + k) =
      make_uint4(rounded_pair(x[0], x[1]), rounded_pair(x[2], x[3]), rounded_pair(x[4], x[5]),
                 rounded_pair(x[6], x[7]));
}

}  // namespace

void gemm_bf16(const GemmPart& p) {
  if (!p.g.a_by_columns && p.rows() <= kRowsAsTheyAre) return gemm_bf16_few_rows(p);
  const std::int64_t ld = (p.g.k + kRoundedStep - 1) / kRoundedStep * kRoundedStep;
  const Workspace room = current_device().workspace;
  const std::int64_t fit = static_cast<std::int64_t>(room.bytes) / (ld * 2);
  if (fit == 0) check(cudaErrorInvalidValue, "gemm: a row is longer than the workspace");
  auto* const rows = static_cast<std::uint16_t*>(room.data);
  const std::int64_t step = fit >= 128 ? fit / 128 * 128 : fit;
  for (GemmPart part = p; part.m_begin < p.m_end; part.m_begin = part.m_end) {
    part.m_end = p.m_end - part.m_begin < step ? p.m_end : part.m_begin + step;
    launch("gemm_bf16_round", round_kernel, blocks_for(part.rows() * (ld / kNumbers), kThreads),
           kThreads, 0, part, rows, ld);
    const bool large = enough_tiles(part.rows(), part.panels() * kPanel, 128, 128);
    if (part.rows() <= (large ? kFewRowsBf16 : kFewRowsOfSmallBf16))
      gemm_bf16_few_rows(part, {rows, ld});
    else
      gemm_bf16_tiles(part, {rows, ld});
  }
}

}  // namespace troupe::kernels::cuda
