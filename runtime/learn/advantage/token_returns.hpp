// Computes advantages and value targets from the rewards of one sample's tokens
// (docs/algorithms.md, "From scores to advantages", step 6). Plain C++ on doubles, pure.
//
// All spans and vectors have one entry per token of the sample; V after the last token is 0.
#pragma once

#include <span>
#include <vector>

namespace troupe::learn {

struct TokenReturns {
  std::vector<double> advantages;
  std::vector<double> targets;  // targets of the critic's values; empty without a critic
};

// Generalised advantage estimation (Schulman et al. 2016, eq. 16):
//   delta_t = r_t + gamma V_next - V_t; A_t = delta_t + gamma lambda A_next; target = A_t + V_t
TokenReturns gae(std::span<const double> rewards,
                 std::span<const double> values,
                 double gamma,
                 double lambda);

struct VtraceSettings {
  double gamma = 1, lambda = 1;
  double rho_max = 1, c_max = 1;
};

// V-trace (Espeholt et al. 2018, eq. 1, with lambda as in its remark 2), w_t = exp(log_w_t clamped
// to +-20):
//   delta_t = min(rho_max, w_t)(r_t + gamma V_next - V_t)
//   v_t = V_t + delta_t + gamma lambda min(c_max, w_t)(v_next - V_next); target = v_t
//   A_t = r_t + gamma (lambda v_next + (1 - lambda) V_next) - V_t, without a weight of its own
// With all w and both bounds equal to 1, the result has the bits of `gae`.
TokenReturns vtrace(std::span<const double> rewards,
                    std::span<const double> values,
                    std::span<const double> log_w,
                    const VtraceSettings& settings);

// Discounted rewards to go: A_t = sum over s >= t of gamma^(s - t) r_s.
std::vector<double> rewards_to_go(std::span<const double> rewards, double gamma);

}  // namespace troupe::learn
