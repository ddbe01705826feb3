// The chunked head, both ways.
#include "runtime/model/head_grad.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using core::Team;
using kernels::kVocabBlock;
using kernels::ops;

std::int64_t logits_ld(const ModelSpec& spec) {
  return kernels::panels_of(spec.vocab) * 16;
}

// The rows of one chunk.
struct Chunk {
  const HeadCall& call;
  std::int64_t begin, rows;
  float* first_logits = nullptr;
  bool kept = false;  // the logits stand there from the forward pass

  const ModelSpec& spec() const { return call.weights.spec(); }
  const float* head_in() const { return call.head_in + begin * spec().hidden; }
  float* logits(std::int64_t row) const { return first_logits + row * logits_ld(spec()); }
  // Calls f(index of target) for the targets of a row of the chunk.
  template <class F>
  void each_target(std::int64_t row, F&& f) const {
    const RowTargets& lists = call.scratch.row_targets;
    const auto at = static_cast<std::size_t>(begin + row);
    for (std::int32_t i = lists.begin[at]; i < lists.begin[at + 1]; ++i) {
      f(static_cast<std::size_t>(lists.target[static_cast<std::size_t>(i)]));
    }
  }
};

template <class F>
void each_chunk(const HeadCall& call, F&& f) {
  HeadScratch& scratch = call.scratch;
  const std::int64_t ld = logits_ld(call.weights.spec());
  for (std::int64_t i = 0; i < scratch.chunks; ++i) {
    const std::int64_t begin = i * kHeadRows_max;
    f(Chunk{call, begin, std::min(kHeadRows_max, call.rows - begin),
            scratch.logits.data() + scratch.place(i) * kHeadRows_max * ld,
            scratch.kept && scratch.stays(i)});
  }
}

// Log-sum-exp, entropy and log-probs of this member's rows of a chunk.
void finish_rows(Team team, const Chunk& chunk, float* logprobs) {
  const HeadCall& call = chunk.call;
  const ModelSpec& spec = chunk.spec();
  const std::int64_t blocks = vocab_blocks(spec);
  const float inv_temperature = call.scratch.inv_temperature[0];
  const auto [first, last] = team.share(chunk.rows);
  for (std::int64_t row = first; row < last; ++row) {
    const float* logits = chunk.logits(row);
    const float lse = merge_vocab_stats(call.scratch.block_max.data() + row * blocks,
                                        call.scratch.block_sum.data() + row * blocks, blocks);
    call.lse[chunk.begin + row] = lse;
    if (call.entropy != nullptr) {
      float weighted = 0.0f;
      for (std::int64_t column = 0; column < spec.vocab; column += kVocabBlock) {
        const std::int64_t count = std::min(kVocabBlock, spec.vocab - column);
        weighted += ops().vocab_weighted(logits + column, count, inv_temperature, lse);
      }
      call.entropy[chunk.begin + row] = lse - weighted;
    }
    chunk.each_target(row, [&](std::size_t i) {
      logprobs[i] = token_logprob(logits[call.targets.token[i]], inv_temperature, lse);
    });
  }
}

struct RowGrad {
  float logprob = 0, entropy = 0;
};

// The sums of the gradients of a row's targets.
RowGrad sum_of(const Chunk& chunk, const HeadGrad& grad, std::int64_t row) {
  RowGrad sum;
  chunk.each_target(row, [&](std::size_t i) {
    if (grad.logprobs != nullptr) sum.logprob += grad.logprobs[i];
    if (grad.entropies != nullptr) sum.entropy += grad.entropies[i];
  });
  return sum;
}

// Turns logits into their gradients, columns [begin, end) of all rows of the chunk.
void grad_of_columns(const Chunk& chunk,
                     const HeadGrad& grad,
                     std::int64_t begin,
                     std::int64_t end) {
  const HeadCall& call = chunk.call;
  const float inv_temperature = call.scratch.inv_temperature[0];
  const float cap = chunk.spec().final_softcap;
  for (std::int64_t row = 0; row < chunk.rows; ++row) {
    float* logits = chunk.logits(row);
    const RowGrad sum = sum_of(chunk, grad, row);
    const float entropy = call.entropy == nullptr ? 0.0f : call.entropy[chunk.begin + row];
    float capped[kVocabBlock];  // the logits, where a soft cap has a gradient of its own
    if (cap > 0) std::copy(logits + begin, logits + end, capped);
    // No column is the target here: a row may have several, so their share is added after.
    ops().vocab_grad(logits, begin, end, inv_temperature, call.lse[chunk.begin + row], -1,
                     sum.logprob, sum.entropy, entropy);
    chunk.each_target(row, [&](std::size_t i) {
      const std::int32_t token = call.targets.token[i];
      if (grad.logprobs == nullptr || token < begin || token >= end) return;
      logits[token] += grad.logprobs[i] * inv_temperature;
    });
    if (cap > 0) ops().softcap_backward(capped, logits + begin, end - begin, cap);
  }
}

void backward_chunk(Team team, const Chunk& chunk, const HeadGrad& grad) {
  const HeadCall& call = chunk.call;
  const ModelSpec& spec = chunk.spec();
  HeadScratch& scratch = call.scratch;
  ProductScratch& products = scratch.products[static_cast<std::size_t>(team.rank)];
  const std::int64_t ld = logits_ld(spec);
  const kernels::Gemm gemm{.m = chunk.rows,
                           .n = spec.vocab,
                           .k = spec.hidden,
                           .a = chunk.head_in(),
                           .lda = spec.hidden,
                           .b = call.weights.head(),
                           .c = chunk.logits(0),
                           .ldc = ld};
  constexpr std::int64_t kBlockPanels = kVocabBlock / kernels::kPanel;
  const auto [first, last] = team.share(vocab_blocks(spec));
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t end = std::min((block + 1) * kVocabBlock, spec.vocab);
    if (!chunk.kept) {
      const std::int64_t column = block * kVocabBlock;
      ops().gemm(gemm, 0, chunk.rows, block * kBlockPanels, kernels::panels_of(end));
      cap_logits(spec, chunk.logits(0) + column, chunk.rows, ld, end - column);
    }
    grad_of_columns(chunk, grad, block * kVocabBlock, end);
  }
  pack_input(team, {chunk.head_in(), chunk.rows, spec.hidden, spec.hidden},
             scratch.packed_rows.data());
  team.barrier();
  const Matrix dlogits{chunk.logits(0), chunk.rows, spec.vocab, ld};
  const std::int64_t head = grad.master.layout().head, trained = grad.grads.layout().head;
  if (trained >= 0) {
    weight_grad(team, dlogits, scratch.packed_rows.data(), spec.hidden,
                grad.grads.data() + trained);
  }
  input_grad(team, dlogits, {grad.master.data() + head, spec.vocab, spec.hidden, spec.hidden},
             grad.dhead_in + chunk.begin * spec.hidden, spec.hidden, products);
  team.barrier();
}

}  // namespace

void RowTargets::build(const TokenTargets& targets, std::int64_t rows) {
  begin.assign(static_cast<std::size_t>(rows) + 1, 0);
  target.resize(targets.token.size());
  for (const std::int32_t row : targets.row)
    ++begin[static_cast<std::size_t>(row) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i)
    begin[i] += begin[i - 1];
  // `begin[row]` runs through the row's places, then all move up by one.
  for (std::size_t i = 0; i < targets.row.size(); ++i) {
    const auto row = static_cast<std::size_t>(targets.row[i]);
    target[static_cast<std::size_t>(begin[row]++)] = static_cast<std::int32_t>(i);
  }
  for (std::size_t i = begin.size() - 1; i > 0; --i)
    begin[i] = begin[i - 1];
  begin[0] = 0;
}

void HeadScratch::prepare(const ModelSpec& spec,
                          const TokenTargets& targets,
                          std::int64_t rows,
                          float temperature,
                          int members,
                          bool backward,
                          std::int64_t logits_max) {
  const std::int64_t chunk = std::min(rows, kHeadRows_max);
  const std::int64_t chunk_logits = kHeadRows_max * logits_ld(spec);
  chunks = (rows + kHeadRows_max - 1) / kHeadRows_max;
  places = std::clamp<std::int64_t>(backward ? logits_max / chunk_logits : 1, 1, chunks);
  kept = backward;
  row_targets.build(targets, rows);
  inv_temperature.assign(static_cast<std::size_t>(chunk), 1.0f / temperature);
  logits.reserve_discard(((places - 1) * kHeadRows_max + chunk) * logits_ld(spec));
  block_max.reserve_discard(chunk * vocab_blocks(spec));
  block_sum.reserve_discard(chunk * vocab_blocks(spec));
  if (!backward) return;
  packed_rows.reserve_discard(kernels::packed_size(spec.hidden, chunk));
  products.resize(static_cast<std::size_t>(members));
  for (ProductScratch& product : products)
    product.reserve(chunk, spec.vocab, spec.hidden);
}

// When there are places for all, each has its own. Else the last ones have, and the others share.
std::int64_t HeadScratch::place(std::int64_t chunk) const {
  return std::max<std::int64_t>(0, chunk - (chunks - places));
}

void head_logprobs(Team team, const HeadCall& call, float* logprobs) {
  kernels::flush_denormals();
  const ModelSpec& spec = call.weights.spec();
  each_chunk(call, [&](const Chunk& chunk) {
    head_forward(team, call.weights, chunk.head_in(), chunk.rows, chunk.logits(0), logits_ld(spec),
                 call.scratch.inv_temperature.data(), call.scratch.block_max.data(),
                 call.scratch.block_sum.data());
    finish_rows(team, chunk, logprobs);
    team.barrier();
  });
}

void head_backward(Team team, const HeadCall& call, const HeadGrad& grad) {
  kernels::flush_denormals();
  each_chunk(call, [&](const Chunk& chunk) { backward_chunk(team, chunk, grad); });
}

}  // namespace troupe::model
