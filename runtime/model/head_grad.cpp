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
  // The targets of the chunk's rows.
  kernels::VocabTargets targets() const {
    const RowTargets& lists = call.scratch.row_targets;
    return {lists.begin.data() + begin, lists.target.data(), call.targets.token.data()};
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
  const auto [first, last] = team.share(chunk.rows);
  if (first >= last) return;
  const kernels::VocabFinish finish{
      .rows = {.logits = chunk.first_logits,
               .ld = logits_ld(chunk.spec()),
               .vocab = chunk.spec().vocab,
               .inv_temperature = call.scratch.inv_temperature.data(),
               .block_max = call.scratch.block_max.data(),
               .block_sum = call.scratch.block_sum.data()},
      .lse = call.lse + chunk.begin,
      .entropy = call.entropy == nullptr ? nullptr : call.entropy + chunk.begin,
      .targets = chunk.targets(),
      .logprobs = logprobs};
  ops().vocab_finish(finish, first, last);
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
                           .c = chunk.first_logits,
                           .ldc = ld};
  const kernels::VocabGrad gradient{
      .logits = chunk.first_logits,
      .ld = ld,
      .vocab = spec.vocab,
      .inv_temperature = scratch.inverse,
      .softcap = spec.final_softcap,
      .lse = call.lse + chunk.begin,
      .entropy = call.entropy == nullptr ? nullptr : call.entropy + chunk.begin,
      .targets = chunk.targets(),
      .dlogprobs = grad.logprobs,
      .dentropies = grad.entropies};
  constexpr std::int64_t kBlockPanels = kVocabBlock / kernels::kPanel;
  const auto [first, last] = team.share(vocab_blocks(spec));
  for (std::int64_t block = first; block < last; block += ops().head_blocks) {
    const std::int64_t end = std::min(block + ops().head_blocks, last);
    if (!chunk.kept) {
      const std::int64_t column = block * kVocabBlock;
      const std::int64_t column_end = std::min(end * kVocabBlock, spec.vocab);
      ops().gemm(gemm, 0, chunk.rows, block * kBlockPanels, kernels::panels_of(column_end));
      cap_logits(spec, chunk.first_logits + column, chunk.rows, ld, column_end - column);
    }
    ops().vocab_grad(gradient, 0, chunk.rows, block, end);
  }
  pack_input(team, {chunk.head_in(), chunk.rows, spec.hidden, spec.hidden},
             scratch.packed_rows.data());
  team.barrier();
  const Matrix dlogits{chunk.first_logits, chunk.rows, spec.vocab, ld};
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
  inverse = 1.0f / temperature;
  inv_temperature.assign(static_cast<std::size_t>(chunk), inverse);
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
    head_forward(team, call.weights, chunk.head_in(), chunk.rows, chunk.first_logits,
                 logits_ld(spec), call.scratch.inv_temperature.data(),
                 call.scratch.block_max.data(), call.scratch.block_sum.data());
    finish_rows(team, chunk, logprobs);
    team.barrier();
  });
}

void head_backward(Team team, const HeadCall& call, const HeadGrad& grad) {
  kernels::flush_denormals();
  each_chunk(call, [&](const Chunk& chunk) { backward_chunk(team, chunk, grad); });
}

}  // namespace troupe::model
