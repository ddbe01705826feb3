// Copies the operands of products of few rows (gemm_rows.cu, gemm_bf16_rows.cu) into shared memory,
// one stage of kStageDepth steps of k at a time. Two warps of a block do nothing else, so that
// computing copy addresses does not delay the other warps' chains.
#pragma once

#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/primitives.cuh"

namespace troupe::kernels::cuda {

inline constexpr int kStageDepth = 128;
inline constexpr int kCopyThreads = 64;

// Whether the device has enough shared memory for stages of many rows, at most 147 KiB (compute
// capability 8.0, 9.0, 10.0). Stages of 16 rows and two panels fit everywhere (99 KiB).
inline bool roomy() {
  return current_device().shared_bytes >= std::size_t{160} * 1024;
}

// Starts copying numbers [k, k + kStageDepth) of the part's rows into rows of kRowFloats. Leaves
// the destination beyond the end of k unchanged. `me` is the index among the copying threads.
template <int kRowFloats>
__device__ void fetch_rows(const GemmPart& p, std::int64_t k, int me, float* to) {
  constexpr int kWarps = kCopyThreads / 32;
  static_assert(kStageDepth == 4 * 32);
  const int rows = static_cast<int>(p.m_end - p.m_begin), lane = me % 32;
  const std::int64_t left = p.g.k - k;
  const float* from = p.g.a + (p.m_begin + me / 32) * p.g.lda + k;
  to += me / 32 * kRowFloats;
  const bool vectors = p.a_vectors && p.g.k % 4 == 0;
  for (int row = me / 32; row < rows; row += kWarps) {
    if (vectors) {
      if (lane * 4 < left) copy_async(to + lane * 4, from + lane * 4);
    } else {
#pragma unroll
      for (int at = 0; at < kStageDepth; at += 32)
        if (at + lane < left) copy_async_word(to + at + lane, from + at + lane);
    }
    from += kWarps * p.g.lda;
    to += kWarps * kRowFloats;
  }
}

// Starts copying kBytes of a panel from `from`, of which `left` exist. A thread's pieces are
// kCopyThreads * 16 bytes apart in source and destination; its first goes to `to`.
template <int kBytes>
__device__ void fetch_lines(const unsigned char* from, std::int64_t left, unsigned char* to) {
  constexpr int kStep = kCopyThreads * 16;
  static_assert(kBytes % kStep == 0);
  if (left >= kBytes) {
#pragma unroll
    for (int at = 0; at < kBytes; at += kStep)
      copy_async(to + at, from + at);
  } else {
#pragma unroll
    for (int at = 0; at < kBytes; at += kStep)
      copy_async(to + at, from + at, at < left);
  }
}

}  // namespace troupe::kernels::cuda
