// Joins the partial sums of one row's vocabulary blocks in one thread block: computes the scale
// exp(max_b - M) of each in shared memory; then single threads run chains over the blocks, as the
// host does. Used by vocab.cu and draw.cu.
#pragma once

#include "kernels/cuda/primitives.cuh"
#include "kernels/cuda/scalar.cuh"
#include "kernels/shapes.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace troupe::kernels::cuda {

inline constexpr int kMergeThreads = 256;

__host__ __device__ constexpr std::int64_t vocab_blocks(std::int64_t vocab) {
  return (vocab + kVocabBlock - 1) / kVocabBlock;
}

// Arrays in shared memory, [blocks] each.
struct MergedBlocks {
  float* scale;
  float* sum;
  int blocks;
  float max;
};
// Bytes of dynamic shared memory.
constexpr std::size_t merge_bytes(std::int64_t vocab) {
  return static_cast<std::size_t>(vocab_blocks(vocab)) * 2 * sizeof(float);
}

// All kMergeThreads threads must call it.
__device__ inline MergedBlocks merge_blocks(const float* block_max,
                                            const float* block_sum,
                                            std::int64_t vocab,
                                            float* shared) {
  __shared__ float warps[kMergeThreads / 32];
  const int blocks = static_cast<int>(vocab_blocks(vocab));
  const int thread = static_cast<int>(threadIdx.x);
  float max = -infinity();
  for (int b = thread; b < blocks; b += kMergeThreads)
    max = larger(block_max[b], max);
  for (int step = 16; step > 0; step /= 2)
    max = larger(__shfl_xor_sync(kAllLanes, max, step), max);
  if (thread % 32 == 0) warps[thread / 32] = max;
  __syncthreads();
  max = warps[0];
  for (int w = 1; w < kMergeThreads / 32; ++w)
    max = larger(warps[w], max);
  const MergedBlocks merged{shared, shared + blocks, blocks, max};
  for (int b = thread; b < blocks; b += kMergeThreads) {
    merged.scale[b] = exp_f32(block_max[b] - max);
    merged.sum[b] = block_sum[b];
  }
  __syncthreads();
  return merged;
}

// Runs on one thread: the log-sum-exp of the row.
__device__ inline float merged_lse(const MergedBlocks& merged) {
  float sum = 0.0f;
#pragma unroll 8
  for (int b = 0; b < merged.blocks; ++b)
    sum = __fmaf_rn(merged.sum[b], merged.scale[b], sum);
  return merged.max + log_f32(sum);
}

}  // namespace troupe::kernels::cuda
