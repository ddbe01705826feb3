// Greedy, plain and truncated draws, and what is told beside them.
#include "runtime/engine/sampler.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/forward.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::engine {

float inv_temperature(const SamplingParams& params) {
  return params.temperature > 0.0f ? 1.0f / params.temperature : 1.0f;
}

Sampler::Sampler(std::int64_t vocab, const kernels::Ops& ops)
    : ops_(ops),
      vocab_(vocab),
      row_(vocab, ops),
      kept_(vocab),
      changes_(vocab),
      report_(vocab, ops) {}

Draw Sampler::draw(const HeadRow& row,
                   const SamplingParams& params,
                   double u,
                   const DrawHistory& history,
                   std::span<TokenLogprob> top) {
  row_.load(row, changes_.find(row.logits, row.inv_temperature, params, history));
  Draw draw;
  if (params.temperature == 0.0f) {
    draw.token = largest();
  } else if (KeptSet::truncates(params, vocab_)) {
    kept_.find(row_, params);
    draw.token = among_kept(u);
    draw.kept_mass = (penalises(params) || !params.logit_bias.empty()) ? own_kept_mass(row)
                                                                       : masked_kept_mass(row);
  } else {
    draw.token = by_inversion(u);
  }
  draw.logprob = model::token_logprob(row.logits[draw.token], row.inv_temperature, row.lse);
  if (params.entropies) draw.entropy = report_.entropy(row);
  if (params.raw_logprobs || !top.empty()) {
    report_.read(row);
    draw.raw_logprob = report_.logprob(draw.token);
    report_.most_likely(top);
    draw.top = top;
  }
  return draw;
}

Draw Sampler::score(const HeadRow& row, std::int32_t token, std::span<TokenLogprob> top) {
  Draw draw;
  draw.token = token;
  report_.read(row);
  draw.logprob = draw.raw_logprob = report_.logprob(token);
  report_.most_likely(top);
  draw.top = top;
  return draw;
}

// Where no score but minus infinity was put in: the weights at hand are the model's own.
float Sampler::masked_kept_mass(const HeadRow& row) const {
  float scale = row_.max() - row.lse;
  ops_.exp(&scale, &scale, 1);
  return std::min(1.0f, static_cast<float>(kept_.mass() * static_cast<double>(scale)));
}

// Where penalties or biases changed scores: the logits are asked again.
float Sampler::own_kept_mass(const HeadRow& row) const {
  const std::vector<Candidate>& tokens = kept_.tokens();
  float p[kernels::kVocabBlock];
  double mass = 0.0;
  for (std::size_t at = 0; at < tokens.size(); at += std::size(p)) {
    const std::size_t count = std::min(std::size(p), tokens.size() - at);
    for (std::size_t i = 0; i < count; ++i)
      p[i] = model::token_logprob(row.logits[tokens[at + i].id], row.inv_temperature, row.lse);
    ops_.exp(p, p, static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      mass += static_cast<double>(p[i]);
  }
  return std::min(1.0f, static_cast<float>(mass));
}

std::int32_t Sampler::largest() {
  std::int64_t block = 0;
  while (row_.block_max(block) < row_.max())
    ++block;
  const std::span<float> scores = row_.scores(block);
  const auto at = std::max_element(scores.begin(), scores.end());
  return static_cast<std::int32_t>(row_.block_begin(block) + (at - scores.begin()));
}

// First the block in which the running mass passes u, then the token within it. The rest that is
// left for the block is stretched to the block's own sum, which is added in another order.
std::int32_t Sampler::by_inversion(double u) {
  double rest = u * row_.mass();
  std::int64_t block = -1;
  for (std::int64_t b = 0; b < row_.blocks(); ++b) {
    const double mass = row_.block_mass(b);
    if (!(mass > 0.0)) continue;
    if (block >= 0) rest -= row_.block_mass(block);
    block = b;
    if (rest < mass) break;
  }
  TROUPE_CHECK(block >= 0, "a distribution without mass");
  const std::span<float> weights = row_.scores(block);
  const float max = row_.block_max(block);
  for (float& value : weights)
    value -= max;
  ops_.exp(weights.data(), weights.data(), static_cast<std::int64_t>(weights.size()));
  double sum = 0.0;
  for (const float weight : weights)
    sum += static_cast<double>(weight);
  rest *= sum / row_.block_mass(block);
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0.0f)) continue;
    last = i;
    rest -= static_cast<double>(weights[i]);
    if (rest < 0.0) break;
  }
  return static_cast<std::int32_t>(row_.block_begin(block)) + static_cast<std::int32_t>(last);
}

std::int32_t Sampler::among_kept(double u) const {
  double rest = u * kept_.mass();
  std::int32_t last = -1;
  for (const Candidate& token : kept_.tokens()) {
    if (!(token.weight > 0.0f)) continue;
    last = token.id;
    rest -= static_cast<double>(token.weight);
    if (rest < 0.0) break;
  }
  TROUPE_CHECK(last >= 0, "a distribution without mass");
  return last;
}

}  // namespace troupe::engine
