// Applies penalties, biases and masks to a row of logits z: finds which tokens change and how
// (kernels::changed_logit says in which order), for the host and for a device, and on the host
// their new scaled scores s = z * inv_temperature. Scratch for one thread; no more entries than the
// vocabulary has tokens.
#pragma once

#include "kernels/draw_shapes.hpp"
#include "runtime/engine/token_counts.hpp"
#include "runtime/engine/types.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

// A sample's masked tokens and earlier tokens. Each list ascends without duplicates.
struct DrawHistory {
  std::span<const std::int32_t> masked = {};  // must not be drawn; never the whole vocabulary
  std::span<const std::int32_t> prompt = {};  // distinct tokens, for the repetition penalty
  std::span<const TokenCount> response = {};  // for all three penalties
  // The tokens that may be drawn, as GuideMask::words; empty: all. Not read by LogitChanges.
  std::span<const std::uint32_t> allowed = {};
};

struct ChangedScore {
  std::int32_t token = 0;
  float score = 0.0f;  // scaled
};

// True if a penalty is on, so that the response's tokens must be counted.
bool penalises(const SamplingParams& params);
kernels::Penalties penalties_of(const SamplingParams& params);

class LogitChanges {
 public:
  explicit LogitChanges(std::int64_t vocab) : vocab_(vocab) {}

  // How tokens change, ascending ids; `row` is 0. Valid until the next call.
  std::span<const kernels::LogitChange> list(const SamplingParams& params,
                                             const DrawHistory& history);
  // The changed tokens, ascending. `logits` is [vocab]. Valid until the next call.
  std::span<const ChangedScore> find(const float* logits,
                                     float inv_temperature,
                                     const SamplingParams& params,
                                     const DrawHistory& history);

 private:
  const std::int64_t vocab_;
  std::vector<kernels::LogitChange> changes_;
  std::vector<ChangedScore> changed_;
};

}  // namespace troupe::engine
