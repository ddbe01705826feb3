// Draws the next token of a sample from its row of logits: the arg max (ties: lower id), or by
// inverting the cumulative distribution at a uniform number. Penalties, biases and masks change the
// scores (logit_changes.hpp), a guide's mask included, then top-k, top-p and min-p drop tokens. The
// reported log-prob is that of the model's own distribution before all of these: full vocabulary,
// at the temperature, computed in float as z * inv_temperature - lse, as in the trainer. One
// Sampler per team member: scratch for one thread, no state between draws.
#pragma once

#include "runtime/engine/kept_set.hpp"
#include "runtime/engine/logit_changes.hpp"
#include "runtime/engine/row_report.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/engine/vocab_row.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

// The stream of core::uniform that sampling uses.
inline constexpr std::uint64_t kSamplingStream = 1;

// 1 / temperature; 1 when greedy.
float inv_temperature(const SamplingParams& params);

struct Draw {
  std::int32_t token = 0;
  float logprob = 0.0f;
  // Set only if the parameters ask for them.
  float raw_logprob = 0.0f;                    // at temperature 1
  float entropy = 0.0f;                        // of the full distribution at the temperature, nats
  float log_kept_mass = 0.0f;                  // see TokenFacts::log_kept_mass
  std::span<const TokenLogprob> top = {};      // most likely first, at temperature 1
  std::span<const std::uint16_t> routed = {};  // one token's part of Sample::routed_experts
};

class Sampler {
 public:
  explicit Sampler(std::int64_t vocab, const kernels::Ops& ops = kernels::ops());

  // `u`: uniform in (0, 1). Draws nothing, and returns a log-prob that is not finite, if no token
  // that may be drawn has a finite logit. `top` has room for params.top_logprobs tokens; Draw::top
  // refers to it.
  Draw draw(const HeadRow& row,
            const SamplingParams& params,
            double u,
            const DrawHistory& history,
            std::span<TokenLogprob> top = {});
  // Draws nothing: returns `token` with its log-prob at temperature 1 (in `logprob` and
  // `raw_logprob`) and fills `top`.
  Draw score(const HeadRow& row, std::int32_t token, std::span<TokenLogprob> top = {});

 private:
  std::int32_t largest();
  std::int32_t by_inversion(double u);
  std::int32_t among_kept(double u) const;
  float log_kept_mass(const HeadRow& row, const DrawHistory& history, bool truncated);

  const kernels::Ops& ops_;
  const std::int64_t vocab_;
  VocabRow row_;
  KeptSet kept_;
  LogitChanges changes_;
  RowReport report_;
  std::vector<float> weights_;  // of kept tokens
};

}  // namespace troupe::engine
