#include "runtime/model/head_grad.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::model {
namespace {

using core::Team;
using kernels::kVocabBlock;
using kernels::ops;

std::int64_t logits_ld(const ModelSpec& spec) {
  return kernels::panels_of(spec.vocab) * 16;
}

// A multiple of kHeadRows_max.
std::int64_t rows_of_chunk(const core::Memory& memory,
                           const ModelSpec& spec,
                           const HeadRequest& request) {
  if (memory.on_host()) return kHeadRows_max;
  const std::int64_t fit = request.logits_max / logits_ld(spec) / kHeadRows_max * kHeadRows_max;
  return std::clamp(fit, kHeadRows_max, kDeviceHeadRows_max);
}

// One chunk of head rows.
struct Chunk {
  const HeadCall& call;
  std::int64_t begin, rows;
  float* first_logits = nullptr;
  bool kept = false;  // the logits of the forward pass are still there

  const ModelSpec& spec() const { return call.weights.spec(); }
  const float* head_in() const { return call.head_in + begin * spec().hidden; }
  float* lse() const { return call.scratch.lse.data() + begin; }
  float* entropy() const {
    return call.scratch.wants_entropy ? call.scratch.entropy.data() + begin : nullptr;
  }
  HeadDivergence::Chunk teacher_chunk() const {
    return {begin, rows, first_logits, logits_ld(spec())};
  }
  // The targets of the chunk's rows.
  kernels::VocabTargets targets() const {
    const kernels::VocabTargets& all = call.scratch.placed;
    return {all.begin + begin, all.target, all.token};
  }
};

template <class F>
void each_chunk(const HeadCall& call, F&& f) {
  HeadScratch& scratch = call.scratch;
  const std::int64_t ld = logits_ld(call.weights.spec());
  for (std::int64_t i = 0; i < scratch.chunks; ++i) {
    const std::int64_t begin = i * scratch.chunk_rows;
    f(Chunk{call, begin, std::min(scratch.chunk_rows, call.rows - begin),
            scratch.logits.data() + scratch.place(i) * scratch.chunk_rows * ld,
            scratch.kept && scratch.stays(i)});
  }
}

// Computes log-sum-exp, entropy and log-probs of this member's rows of a chunk.
void finish_rows(Team team, const Chunk& chunk) {
  const HeadCall& call = chunk.call;
  const core::Range own = team.share(chunk.rows);
  if (own.empty()) return;
  const kernels::VocabFinish finish{.rows = {.logits = chunk.first_logits,
                                             .ld = logits_ld(chunk.spec()),
                                             .vocab = chunk.spec().vocab,
                                             .inv_temperature = call.scratch.inv_temperature.data(),
                                             .block_max = call.scratch.block_max.data(),
                                             .block_sum = call.scratch.block_sum.data()},
                                    .lse = chunk.lse(),
                                    .entropy = chunk.entropy(),
                                    .targets = chunk.targets(),
                                    .logprobs = call.scratch.logprobs.data()};
  ops().vocab_finish(finish, own);
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
      .lse = chunk.lse(),
      .entropy = chunk.entropy(),
      .targets = chunk.targets(),
      .dlogprobs = scratch.has_dlogprobs ? scratch.dlogprobs.data() : nullptr,
      .dentropies = scratch.has_dentropies ? scratch.dentropies.data() : nullptr};
  constexpr std::int64_t kPanelsOfBlock = kVocabBlock / kernels::kPanel;
  const auto [first, last] = team.share(vocab_blocks(spec));
  const std::int64_t at_once = std::min(ops().head_blocks, last - first);
  for (std::int64_t block = first; block < last; block += at_once) {
    const std::int64_t end = std::min(block + at_once, last);
    if (!chunk.kept) {
      const std::int64_t column = block * kVocabBlock;
      const std::int64_t column_end = std::min(end * kVocabBlock, spec.vocab);
      ops().gemm(gemm, {0, chunk.rows}, {block * kPanelsOfBlock, kernels::panels_of(column_end)});
      cap_logits(spec, chunk.first_logits + column, chunk.rows, ld, column_end - column);
    }
    const bool diverges = scratch.divergence.on();
    if (diverges) scratch.divergence.gradient(chunk.teacher_chunk(), {block, end});
    ops().vocab_grad(gradient, {0, chunk.rows}, {block, end});
    if (diverges) {
      scratch.divergence.add(chunk.teacher_chunk(), {block, end}, chunk.first_logits);
    }
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
  // `begin[row]` serves as the write position of its row. Afterwards all entries move up by one.
  for (std::size_t i = 0; i < targets.row.size(); ++i) {
    const auto row = static_cast<std::size_t>(targets.row[i]);
    target[static_cast<std::size_t>(begin[row]++)] = static_cast<std::int32_t>(i);
  }
  for (std::size_t i = begin.size() - 1; i > 0; --i)
    begin[i] = begin[i - 1];
  begin[0] = 0;
}

void HeadScratch::prepare(core::TeamRunner& team,
                          const ModelSpec& spec,
                          const HeadRequest& request) {
  core::Memory& memory = team.memory();
  const std::int64_t rows = request.rows;
  chunk_rows = rows_of_chunk(memory, spec, request);
  const std::int64_t chunk = std::min(rows, chunk_rows);
  const std::int64_t chunk_logits = chunk_rows * logits_ld(spec);
  chunks = (rows + chunk_rows - 1) / chunk_rows;
  places =
      std::clamp<std::int64_t>(request.backward ? request.logits_max / chunk_logits : 1, 1, chunks);
  kept = request.backward;
  targets = &request.targets;
  wants_entropy = request.entropy;
  row_targets_.build(request.targets, rows);
  std::tie(placed.begin, placed.target, placed.token) =
      lists_.place(memory, row_targets_.begin, row_targets_.target, request.targets.token);
  inverse = 1.0f / request.temperature;
  inverses_.assign(static_cast<std::size_t>(chunk), inverse);
  inv_temperature.reserve_discard(chunk, memory);
  inv_temperature.upload(inverses_);
  logits.reserve_discard(((places - 1) * chunk_rows + chunk) * logits_ld(spec), memory);
  block_max.reserve_discard(chunk * vocab_blocks(spec), memory);
  block_sum.reserve_discard(chunk * vocab_blocks(spec), memory);
  lse.reserve_discard(rows, memory);
  entropy.reserve_discard(wants_entropy ? rows : 0, memory);
  logprobs.reserve_discard(targets->size(), memory);
  divergence.prepare(team, spec, request.teacher, rows, chunk_rows);
  if (!request.backward) return;
  dlogprobs.reserve_discard(targets->size(), memory);
  dentropies.reserve_discard(wants_entropy ? targets->size() : 0, memory);
  packed_rows.reserve_discard(kernels::packed_size(spec.hidden, chunk), memory);
  products.resize(static_cast<std::size_t>(team.size()));
  for (ProductScratch& product : products)
    product.reserve(memory, chunk, spec.vocab, spec.hidden);
}

void HeadScratch::results(std::span<float> logprobs_out, std::span<float> entropies_out) {
  logprobs.download(logprobs_out);
  if (entropies_out.empty()) return;
  TROUPE_CHECK(wants_entropy, "entropy was not computed");
  row_entropy_.resize(row_targets_.begin.size() - 1);
  entropy.download(row_entropy_);
  for (std::size_t i = 0; i < entropies_out.size(); ++i)
    entropies_out[i] = row_entropy_[static_cast<std::size_t>(targets->row[i])];
}

void HeadScratch::set_gradients(const float* of_logprobs, const float* of_entropies) {
  TROUPE_CHECK(of_entropies == nullptr || wants_entropy, "entropy was not computed");
  const auto count = static_cast<std::size_t>(targets->size());
  has_dlogprobs = of_logprobs != nullptr;
  has_dentropies = of_entropies != nullptr;
  if (has_dlogprobs) dlogprobs.upload({of_logprobs, count});
  if (has_dentropies) dentropies.upload({of_entropies, count});
}

std::vector<DivergenceRow> HeadScratch::divergences() const {
  std::vector<DivergenceRow> by_target;
  by_target.reserve(targets->row.size());
  for (const std::int32_t row : targets->row)
    by_target.push_back(divergence.rows()[static_cast<std::size_t>(row)]);
  return by_target;
}

void HeadScratch::set_divergence_gradients(const float* of_divergences) {
  std::vector<float> by_row(divergence.rows().size());
  for (std::size_t i = 0; of_divergences != nullptr && i < targets->row.size(); ++i)
    by_row[static_cast<std::size_t>(targets->row[i])] += of_divergences[i];
  divergence.set_gradients(std::move(by_row));
}

// If there are places for all chunks, each has its own. Otherwise only the last chunks do, and the
// others share place 0.
std::int64_t HeadScratch::place(std::int64_t chunk) const {
  return std::max<std::int64_t>(0, chunk - (chunks - places));
}

void head_logprobs(Team team, const HeadCall& call) {
  kernels::flush_denormals();
  const ModelSpec& spec = call.weights.spec();
  each_chunk(call, [&](const Chunk& chunk) {
    head_forward(team, call.weights, chunk.head_in(), chunk.rows, chunk.first_logits,
                 logits_ld(spec), call.scratch.inv_temperature.data(),
                 call.scratch.block_max.data(), call.scratch.block_sum.data());
    finish_rows(team, chunk);
    if (call.scratch.divergence.on()) call.scratch.divergence.measure(team, chunk.teacher_chunk());
    team.barrier();
  });
}

void head_backward(Team team, const HeadCall& call, const HeadGrad& grad) {
  kernels::flush_denormals();
  each_chunk(call, [&](const Chunk& chunk) { backward_chunk(team, chunk, grad); });
}

}  // namespace troupe::model
