// Statistics of an update's tokens: clipping, ratios, entropy, KL to the sampling policy and to the
// reference. Kept as sums in double, which the trainer adds up over micro-batches in plan order.
// Plain C++; a value type.
#pragma once

#include "runtime/learn/loss/objective.hpp"
#include "runtime/learn/settings.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::learn {

struct ObjectiveStats {
  std::int64_t tokens = 0;
  double loss = 0;                // of policy_loss; the trainer sets it, observe() does not
  std::int64_t clipped_low = 0;   // A < 0 and r < 1 - e_low: no gradient
  std::int64_t clipped_high = 0;  // A > 0 and r > 1 + e_high: no gradient
  std::int64_t clipped_dual = 0;  // A < 0 and r > dual_clip: no gradient
  double ratio_sum = 0, ratio_min = 1, ratio_max = 1;
  double rho_sum = 0, rho_square_sum = 0, rho_max = 0;
  std::int64_t masked = 0;    // a bound lowered the token's weight, or a correction dropped it
  double kl_old_sum = 0;      // x - 1 - log x, x = exp(l - l_p)
  double kl_rollout_sum = 0;  // x - 1 - log x, x = pi/mu: estimates KL(mu || pi)
  double kl_ref_sum = 0;      // exp(-d) - 1 + d, d = l - l_ref
  double entropy_sum = 0;
  bool has_reference = false, has_entropy = false;

  void add(const ObjectiveStats& other);
  // (sum rho)^2 / (n sum rho^2): 1 when all tokens weigh the same, 1/n when one carries all.
  double effective_sample_share() const;
  // Ordered (name, value) pairs, named and defined in docs/metrics.md.
  std::vector<std::pair<std::string, double>> metrics() const;
};

// The statistics of one micro-batch at its current log-probs; `entropy` may be empty.
ObjectiveStats observe(const AlgoSettings& algo,
                       const TokenBatch& batch,
                       std::span<const double> logprobs,
                       std::span<const double> entropy);

}  // namespace troupe::learn
