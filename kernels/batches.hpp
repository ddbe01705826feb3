// Operations that loop over items, rows, blocks or pieces and call a function of the level for
// each. The including source must define those functions first (kernels/table.hpp). Every level
// compiles its own copy, because the sources of two levels must not share an inline function. No
// state; any thread.
#pragma once

#include "kernels/moment_blocks.hpp"
#include "kernels/plain_rows.hpp"
#include "kernels/row_shapes.hpp"
#include "kernels/scalar.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

using namespace plain;

// On the host, engine::Sampler draws.
constexpr std::nullptr_t draw = nullptr;
constexpr std::nullptr_t draw_kept = nullptr;
constexpr std::nullptr_t change_logits = nullptr;
constexpr std::nullptr_t restore_logits = nullptr;
constexpr std::nullptr_t most_likely = nullptr;

constexpr std::int64_t least(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

constexpr std::int64_t vocab_blocks(std::int64_t vocab) {
  return (vocab + kVocabBlock - 1) / kVocabBlock;
}

// Computes these rows of C one piece of k at a time. The sum of a piece is kept apart until it is
// complete, and is then added to C.
void gemm_in_pieces(const PieceGemm& g, Range rows, Range columns) {
  if (rows.empty() || columns.empty()) return;
  const std::int64_t width = columns.size(), all = rows.size();
  const std::int64_t chunks = (all + kPieceRows - 1) / kPieceRows;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t row = rows.begin + all * chunk / chunks;
    const std::int64_t count = rows.begin + all * (chunk + 1) / chunks - row;
    float* const out = g.c + row * g.ldc + columns.begin;
    for (std::int64_t k = 0; k < g.k; k += g.piece) {
      const Gemm product{.m = count,
                         .n = width,
                         .k = least(g.piece, g.k - k),
                         .a = g.a + row * g.lda + k,
                         .lda = g.lda,
                         .b = g.b + k * g.ldb + columns.begin,
                         .ldb = g.ldb,
                         .c = k == 0 ? out : g.sums,
                         .ldc = k == 0 ? g.ldc : width};
      gemm(product, {0, count}, {0, panels_of(width)});
      if (k == 0) continue;
      add_rows({.columns = width,
                .a = out,
                .lda = g.ldc,
                .b = g.sums,
                .ldb = width,
                .out = out,
                .ldo = g.ldc},
               {0, count});
    }
  }
}

void gate_mul(const GateMul& g, Range rows) {
  g.activation == Activation::kSilu ? gate_mul_of<Silu>(g, rows) : gate_mul_of<GeluTanh>(g, rows);
}

void gate_mul_backward(const GateMulBackward& g, Range rows) {
  g.activation == Activation::kSilu ? gate_mul_backward_of<Silu>(g, rows)
                                    : gate_mul_backward_of<GeluTanh>(g, rows);
}

void attention(const Attention& a, const AttentionItem* items, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    attention_item(a, items[i], i + 1 < count ? items + i + 1 : nullptr);
}

void attention_backward(const AttentionBackward& a,
                        const AttentionUnit* units,
                        std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int32_t segment = units[i].segment_begin; segment < units[i].segment_end; ++segment)
      attention_gradient(a, segment, units[i].kv_head);
}

void softcap(const SoftCap& s, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    softcap_row(s.x + row * s.ldx, s.columns, s.cap);
}

void vocab_sums(const VocabRows& v, Range rows, Range blocks) {
  const std::int64_t all = vocab_blocks(v.vocab);
  for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
    const std::int64_t column = block * kVocabBlock;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      vocab_stats(v.logits + row * v.ld + column, least(kVocabBlock, v.vocab - column),
                  v.inv_temperature[row], v.block_max + row * all + block,
                  v.block_sum + row * all + block);
    }
  }
}

float merged_lse(const float* block_max, const float* block_sum, std::int64_t blocks) {
  constexpr std::int64_t kChunk = 256;
  float scale[kChunk];
  float max = block_max[0];
  for (std::int64_t i = 1; i < blocks; ++i)
    max = max < block_max[i] ? block_max[i] : max;
  float sum = 0.0f;
  for (std::int64_t begin = 0; begin < blocks; begin += kChunk) {
    const std::int64_t count = least(kChunk, blocks - begin);
    for (std::int64_t i = 0; i < count; ++i)
      scale[i] = block_max[begin + i] - max;
    exp(scale, scale, count);
    for (std::int64_t i = 0; i < count; ++i)
      sum = __builtin_fmaf(block_sum[begin + i], scale[i], sum);
  }
  return max + log_f32(sum);
}

void vocab_finish(const VocabFinish& v, Range rows) {
  const std::int64_t blocks = vocab_blocks(v.rows.vocab);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float lse =
        merged_lse(v.rows.block_max + row * blocks, v.rows.block_sum + row * blocks, blocks);
    v.lse[row] = lse;
    const float* const logits = v.rows.logits + row * v.rows.ld;
    if (v.entropy != nullptr) {
      float weighted = 0.0f;
      for (std::int64_t column = 0; column < v.rows.vocab; column += kVocabBlock)
        weighted += vocab_weighted(logits + column, least(kVocabBlock, v.rows.vocab - column),
                                   v.rows.inv_temperature[row], lse);
      v.entropy[row] = lse - weighted;
    }
    if (v.targets.begin == nullptr) continue;
    for (std::int32_t i = v.targets.begin[row]; i < v.targets.begin[row + 1]; ++i) {
      const std::int32_t target = v.targets.target[i];
      const float scaled = logits[v.targets.token[target]] * v.rows.inv_temperature[row];
      v.logprobs[target] = scaled - lse;
    }
  }
}

// The gradient of columns [begin, end) of one row of logits.
void vocab_grad_block(const VocabGrad& v, std::int64_t row, std::int64_t begin, std::int64_t end) {
  float* const logits = v.logits + row * v.ld;
  const std::int32_t first = v.targets.begin[row], last = v.targets.begin[row + 1];
  float logprob = 0.0f, entropy = 0.0f;  // sums of the gradients of the row's targets
  for (std::int32_t i = first; i < last; ++i) {
    const std::int32_t target = v.targets.target[i];
    if (v.dlogprobs != nullptr) logprob += v.dlogprobs[target];
    if (v.dentropies != nullptr) entropy += v.dentropies[target];
  }
  float capped[kVocabBlock];  // the logits, needed for the gradient of a soft cap
  for (std::int64_t i = begin; v.softcap > 0.0f && i < end; ++i)
    capped[i - begin] = logits[i];
  vocab_grad_row(logits + begin, end - begin, v.inv_temperature, v.lse[row], logprob, entropy,
                 v.entropy == nullptr ? 0.0f : v.entropy[row]);
  for (std::int32_t i = first; v.dlogprobs != nullptr && i < last; ++i) {
    const std::int32_t target = v.targets.target[i], token = v.targets.token[target];
    if (token >= begin && token < end) logits[token] += v.dlogprobs[target] * v.inv_temperature;
  }
  if (v.softcap > 0.0f) softcap_gradient_row(capped, logits + begin, end - begin, v.softcap);
}

void vocab_grad(const VocabGrad& v, Range rows, Range blocks) {
  for (std::int64_t block = blocks.begin; block < blocks.end; ++block)
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      vocab_grad_block(v, row, block * kVocabBlock, least((block + 1) * kVocabBlock, v.vocab));
}

void sum_squares(const SumSquares& s, Range chunks) {
  for (std::int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk)
    s.sums[chunk] =
        sum_squares_of(s.x + chunk * kNormChunk, least(kNormChunk, s.count - chunk * kNormChunk));
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
