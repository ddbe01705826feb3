// One row of logits as scores of tokens, for kernels that draw with one thread block a row: the
// device's side of engine::VocabRow.
#pragma once

#include "kernels/cuda/vocab_merge.cuh"
#include "kernels/row_shapes.hpp"

namespace troupe::kernels::cuda {

struct TokenRow {
  static constexpr int kBlock = static_cast<int>(kVocabBlock);

  const float* logits;
  const float* block_max;
  float inv_temperature;
  std::int64_t vocab;

  __device__ int blocks() const { return static_cast<int>(vocab_blocks(vocab)); }
  // The number of columns in a block.
  __device__ int size(int block) const {
    const std::int64_t left = vocab - block * kVocabBlock;
    return static_cast<int>(left < kVocabBlock ? left : kVocabBlock);
  }
  __device__ float score(int block, int i) const {
    return logits[block * kVocabBlock + i] * inv_temperature;
  }
};

__device__ inline TokenRow token_row(const VocabRows& rows, std::int64_t at) {
  return {rows.logits + at * rows.ld, rows.block_max + at * vocab_blocks(rows.vocab),
          rows.inv_temperature[at], rows.vocab};
}

// The mass of a block, and of the row, in units of exp(max).
__device__ inline double mass_of_block(const MergedBlocks& merged, int block) {
  return static_cast<double>(merged.sum[block]) * static_cast<double>(merged.scale[block]);
}
__device__ inline double mass_of_row(const MergedBlocks& merged) {
  double mass = 0.0;
#pragma unroll 4
  for (int b = 0; b < merged.blocks; ++b)
    mass = mass + mass_of_block(merged, b);
  return mass;
}

}  // namespace troupe::kernels::cuda
