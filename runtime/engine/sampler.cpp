#include "runtime/engine/sampler.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/forward.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

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
  row_.load(row, changes_.find(row.logits, row.inv_temperature, params, history), history.allowed);
  Draw draw;
  if (!std::isfinite(row_.max())) {  // no token that may be drawn has a finite logit
    draw.logprob = row_.max();
    return draw;
  }
  const bool truncated = params.temperature > 0.0f && KeptSet::truncates(params, vocab_);
  if (params.temperature == 0.0f) {
    draw.token = largest();
  } else if (truncated) {
    kept_.find(row_, params);
    draw.token = among_kept(u);
  } else {
    draw.token = by_inversion(u);
  }
  draw.logprob = model::token_logprob(row.logits[draw.token], row.inv_temperature, row.lse);
  if (params.kept_mass) draw.log_kept_mass = log_kept_mass(row, history, truncated);
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

// The mass of the tokens that could be drawn, under the model's own distribution: by their logits
// before penalties and biases.
float Sampler::log_kept_mass(const HeadRow& row, const DrawHistory& history, bool truncated) {
  if (!truncated && history.allowed.empty() && history.masked.empty()) return 0.0f;
  double mass = 0.0;
  const auto add = [&] {
    ops_.exp(weights_.data(), weights_.data(), std::ssize(weights_));
    for (const float weight : weights_)
      mass += static_cast<double>(weight);
    weights_.clear();
  };
  const auto weigh = [&](std::int64_t token) {
    weights_.push_back(model::token_logprob(row.logits[token], row.inv_temperature, row.lse));
  };
  if (truncated) {
    for (const Candidate& token : kept_.tokens())
      weigh(token.id);
    add();
    return static_cast<float>(std::log(std::min(mass, 1.0)));
  }
  for (std::int64_t block = 0; block < row_.blocks(); ++block) {
    if (!(row_.block_max(block) > -std::numeric_limits<float>::infinity())) continue;
    const std::span<const float> scores = row_.scores(block);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] > -std::numeric_limits<float>::infinity())
        weigh(row_.block_begin(block) + static_cast<std::int64_t>(i));
    }
    add();
  }
  return static_cast<float>(std::log(std::min(mass, 1.0)));
}

std::int32_t Sampler::largest() {
  std::int64_t block = 0;
  while (row_.block_max(block) < row_.max())
    ++block;
  const std::span<float> scores = row_.scores(block);
  const auto at = std::max_element(scores.begin(), scores.end());
  return static_cast<std::int32_t>(row_.block_begin(block) + (at - scores.begin()));
}

// Finds the block in which the running mass passes u * mass, then the token within that block. The
// block's weights are summed again here, in another order than in block_mass, so the rest of the
// mass is scaled by the ratio of the two sums.
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

// The first token with which the running mass exceeds u * mass.
std::int32_t Sampler::among_kept(double u) const {
  const auto wanted = static_cast<std::uint64_t>(u * static_cast<double>(kept_.mass()));
  std::uint64_t mass = 0;
  std::int32_t last = -1;
  for (const Candidate& token : kept_.tokens()) {
    if (token.mass() == 0) continue;
    last = token.id;
    mass += token.mass();
    if (mass > wanted) break;
  }
  TROUPE_CHECK(last >= 0, "a distribution without mass");
  return last;
}

}  // namespace troupe::engine
