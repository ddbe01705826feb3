// Draws the next token of a sample from its row of logits: the arg max (ties: lower id), or by
// inverting the cumulative distribution at a uniform number that depends on the sample's seed and
// the position alone. The log-prob is that of the full vocabulary at the temperature, before top-k,
// top-p, min-p and the mask; it is z * inv_temperature - lse in float, as the trainer computes it.
// One per team member: scratch for one thread, nothing kept between draws.
#pragma once

#include "runtime/engine/kept_set.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/engine/vocab_row.hpp"

#include <cstdint>
#include <span>

namespace troupe::engine {

// Stream of core::uniform that sampling draws from.
inline constexpr std::uint64_t kSamplingStream = 1;

// 1 / temperature; 1 when greedy.
float inv_temperature(const SamplingParams& params);

struct Draw {
  std::int32_t token = 0;
  float logprob = 0.0f;
  float kept_mass = 1.0f;  // probability of the tokens that could have been drawn
};

class Sampler {
 public:
  explicit Sampler(std::int64_t vocab, const kernels::Ops& ops = kernels::ops());

  // `u` in (0, 1). `masked`: ids ascending that are not to be drawn.
  Draw draw(const HeadRow& row,
            const SamplingParams& params,
            double u,
            std::span<const std::int32_t> masked);

 private:
  std::int32_t largest();
  std::int32_t by_inversion(double u);
  std::int32_t among_kept(double u) const;

  const kernels::Ops& ops_;
  const std::int64_t vocab_;
  VocabRow row_;
  KeptSet kept_;
};

}  // namespace troupe::engine
