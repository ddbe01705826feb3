// The language-model head: logits, and the partial sums of the softmax over the vocabulary.
#include "kernels/scalar.hpp"
#include "runtime/core/check.hpp"
#include "runtime/model/forward.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::model {
namespace {

constexpr std::int64_t kBlockPanels = kernels::kVocabBlock / kernels::kPanel;

}  // namespace

std::int64_t vocab_blocks(const ModelSpec& spec) {
  return (spec.vocab + kernels::kVocabBlock - 1) / kernels::kVocabBlock;
}

void head_forward(core::Team team,
                  const PackedWeights& weights,
                  const float* head_in,
                  std::int64_t rows,
                  float* logits,
                  std::int64_t ldl,
                  const float* inv_temperature,
                  float* block_max,
                  float* block_sum) {
  const ModelSpec& spec = weights.spec();
  const kernels::Ops& ops = kernels::ops();
  const std::int64_t blocks = vocab_blocks(spec);
  const std::int64_t panels = kernels::panels_of(spec.vocab);
  const kernels::Gemm gemm{.m = rows,
                           .n = spec.vocab,
                           .k = spec.hidden,
                           .a = head_in,
                           .lda = spec.hidden,
                           .b = weights.head(),
                           .c = logits,
                           .ldc = ldl};
  kernels::flush_denormals();
  const auto [first, last] = team.share(blocks);
  // Block by block, so that the sums read logits that are still in the cache.
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t panel = block * kBlockPanels;
    ops.gemm(gemm, 0, rows, panel, std::min(panel + kBlockPanels, panels));
    const std::int64_t column = block * kernels::kVocabBlock;
    const std::int64_t count = std::min(kernels::kVocabBlock, spec.vocab - column);
    cap_logits(spec, logits + column, rows, ldl, count);
    if (block_max == nullptr) continue;
    for (std::int64_t row = 0; row < rows; ++row) {
      ops.vocab_stats(logits + row * ldl + column, count, inv_temperature[row],
                      block_max + row * blocks + block, block_sum + row * blocks + block);
    }
  }
  team.barrier();
}

void cap_logits(
    const ModelSpec& spec, float* logits, std::int64_t rows, std::int64_t ldl, std::int64_t count) {
  if (spec.final_softcap == 0) return;
  for (std::int64_t row = 0; row < rows; ++row)
    kernels::ops().softcap(logits + row * ldl, count, spec.final_softcap);
}

float merge_vocab_stats(const float* block_max, const float* block_sum, std::int64_t blocks) {
  const kernels::Ops& ops = kernels::ops();
  constexpr std::int64_t kChunk = 256;
  float scale[kChunk];
  const float max = *std::max_element(block_max, block_max + blocks);
  float sum = 0.0f;
  for (std::int64_t begin = 0; begin < blocks; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, blocks - begin);
    for (std::int64_t i = 0; i < count; ++i)
      scale[i] = block_max[begin + i] - max;
    ops.exp(scale, scale, count);
    for (std::int64_t i = 0; i < count; ++i) {
      sum = std::fma(block_sum[begin + i], scale[i], sum);
    }
  }
  return max + kernels::log_f32(sum);
}

}  // namespace troupe::model
