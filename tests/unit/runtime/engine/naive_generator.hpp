// The generator that engines are compared with: one sample at a time, the whole sequence computed
// anew for every token, no cache, no batch, no schedule.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/engine/sampler.hpp"
#include "runtime/model/forward.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace troupe::engine {

// The next token after `sequence`, everything computed anew.
inline Draw naive_draw(const model::PackedWeights& weights,
                       const GroupRequest& request,
                       std::int32_t index,
                       const std::vector<std::int32_t>& sequence,
                       std::span<const std::int32_t> masked,
                       std::span<TokenLogprob> top = {}) {
  const model::ModelSpec& spec = weights.spec();
  const auto length = static_cast<std::int32_t>(sequence.size());
  model::ForwardPlan plan;
  plan.slot_begin.push_back(0);
  for (std::int32_t p = 0; p < length; ++p) {
    plan.tokens.push_back(sequence[static_cast<std::size_t>(p)]);
    plan.positions.push_back(p);
    plan.slots.push_back(p);
    plan.slot_begin.push_back(p + 1);
  }
  const std::int32_t blocks = (length + 15) / 16;
  for (std::int32_t b = 0; b < blocks; ++b)
    plan.block_table.push_back(b);
  plan.segments.push_back({0, length, 0, 0});
  plan.logit_rows.push_back(length - 1);
  plan.finish(spec.kv_heads, 1);
  model::KvPool pool(spec, spec.layers, blocks);
  model::ForwardScratch scratch;
  scratch.reserve(core::host_memory(), spec, length, 1);
  model::forward_hidden(core::Team{}, weights, plan, pool, scratch);
  const std::int64_t vocab_blocks = model::vocab_blocks(spec);
  core::Buffer<float> logits((spec.vocab + 15) / 16 * 16), max(vocab_blocks), sum(vocab_blocks);
  const float scale = inv_temperature(request.sampling);
  model::head_forward(core::Team{}, weights, scratch.head_in.data(), 1, logits.data(),
                      logits.size(), &scale, max.data(), sum.data());
  HeadRow row{logits.data(), max.data(), sum.data(), scale,
              model::merge_vocab_stats(max.data(), sum.data(), vocab_blocks)};
  const std::uint64_t seed = core::derive_seed(request.seed, static_cast<std::uint64_t>(index));
  const double u = core::uniform(seed, kSamplingStream, static_cast<std::uint64_t>(length));
  // Counted anew from the whole sequence.
  const auto response = sequence.begin() + static_cast<std::ptrdiff_t>(request.prompt.size());
  const std::set<std::int32_t> prompt(sequence.begin(), response);
  const std::vector<std::int32_t> distinct(prompt.begin(), prompt.end());
  std::map<std::int32_t, std::int32_t> drawn;
  for (auto token = response; token != sequence.end(); ++token)
    ++drawn[*token];
  std::vector<TokenCount> counts;
  for (const auto& [token, count] : drawn)
    counts.push_back({token, count});
  return Sampler(spec.vocab).draw(row, request.sampling, u, {masked, distinct, counts}, top);
}

// One sample of `request`, without stop strings; `eos` ascending.
inline Sample naive_sample(const model::PackedWeights& weights,
                           const GroupRequest& request,
                           std::int32_t index,
                           const std::vector<std::int32_t>& eos = {}) {
  const SamplingParams& params = request.sampling;
  Sample out;
  out.group = request.id;
  out.index = index;
  std::vector<std::int32_t> ends = params.stop_tokens;
  if (!params.ignore_eos) ends.insert(ends.end(), eos.begin(), eos.end());
  std::sort(ends.begin(), ends.end());
  std::vector<std::int32_t> sequence = request.prompt;
  std::vector<TokenLogprob> top(static_cast<std::size_t>(params.top_logprobs));
  for (std::int32_t i = 0; i < params.max_new_tokens; ++i) {
    const bool early = i < params.min_new_tokens;
    const Draw draw = naive_draw(
        weights, request, index, sequence,
        early ? std::span<const std::int32_t>(ends) : std::span<const std::int32_t>(), top);
    sequence.push_back(draw.token);
    out.tokens.push_back(draw.token);
    out.logprobs.push_back(draw.logprob);
    if (params.raw_logprobs) out.raw_logprobs.push_back(draw.raw_logprob);
    if (params.entropies) out.entropies.push_back(draw.entropy);
    out.top_logprobs.insert(out.top_logprobs.end(), top.begin(), top.end());
    out.versions.push_back(weights.version());
    const bool is_eos = std::binary_search(eos.begin(), eos.end(), draw.token);
    if (!params.ignore_eos && is_eos) {
      out.finish = FinishReason::kEos;
      break;
    }
    if (std::binary_search(ends.begin(), ends.end(), draw.token)) {
      out.finish = FinishReason::kStop;
      break;
    }
  }
  return out;
}

inline Samples naive_all(const model::PackedWeights& weights,
                         const std::vector<GroupRequest>& requests,
                         const std::vector<std::int32_t>& eos = {}) {
  Samples samples;
  for (const GroupRequest& request : requests) {
    for (std::int32_t i = 0; i < request.samples; ++i) {
      samples.emplace(std::pair(request.id.value, i), naive_sample(weights, request, i, eos));
    }
  }
  return samples;
}

}  // namespace troupe::engine
