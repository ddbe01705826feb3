// The forward pass of the language-model head: computes logits, and the partial maxima and sums of
// their softmax over the vocabulary.
#include "runtime/model/forward.hpp"

#include <algorithm>

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
  const kernels::VocabRows sums{.logits = logits,
                                .ld = ldl,
                                .vocab = spec.vocab,
                                .inv_temperature = inv_temperature,
                                .block_max = block_max,
                                .block_sum = block_sum};
  const auto [first, last] = team.share(blocks);
  // Works on a few blocks at a time, so that the sums read logits that are still in the cache.
  const std::int64_t at_once = std::min(ops.head_blocks, last - first);
  for (std::int64_t block = first; block < last; block += at_once) {
    const std::int64_t end = std::min(block + at_once, last);
    ops.gemm(gemm, {0, rows}, {block * kBlockPanels, std::min(end * kBlockPanels, panels)});
    const std::int64_t column = block * kernels::kVocabBlock;
    const std::int64_t count = std::min(end * kernels::kVocabBlock, spec.vocab) - column;
    cap_logits(spec, logits + column, rows, ldl, count);
    if (block_max != nullptr) ops.vocab_sums(sums, {0, rows}, {block, end});
  }
  team.barrier();
}

void cap_logits(
    const ModelSpec& spec, float* logits, std::int64_t rows, std::int64_t ldl, std::int64_t count) {
  if (spec.final_softcap == 0) return;
  kernels::ops().softcap({.columns = count, .x = logits, .ldx = ldl, .cap = spec.final_softcap},
                         {0, rows});
}

float merge_vocab_stats(const float* block_max, const float* block_sum, std::int64_t blocks) {
  float lse = 0.0f;
  kernels::VocabFinish merge;
  merge.rows.vocab = blocks * kernels::kVocabBlock;
  merge.rows.block_max = const_cast<float*>(block_max);  // read only
  merge.rows.block_sum = const_cast<float*>(block_sum);
  merge.lse = &lse;
  kernels::host_ops().vocab_finish(merge, {0, 1});
  return lse;
}

}  // namespace troupe::model
