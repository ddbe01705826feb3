// From the rewards of one sample's tokens to advantages and value targets (docs/algorithms.md,
// "From scores to advantages", step 6). Plain C++ on doubles, pure.
//
// Common to all: one entry per token of the sample. `policy` says which tokens the policy chose
// (1) and which the environment wrote (0); empty means all are the policy's. "Next" is the next
// token of the policy, however many of the environment lie between; V after the last one is 0.
// Entries of environment tokens come back as 0 and their rewards and values are not read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

struct TokenReturns {
  std::vector<double> advantages;
  std::vector<double> targets;  // what the values should have been
};

// Generalised advantage estimation (Schulman et al. 2016, eq. 16):
//   delta_t = r_t + gamma V_next - V_t; A_t = delta_t + gamma lambda A_next; target = A_t + V_t
TokenReturns gae(std::span<const double> rewards,
                 std::span<const double> values,
                 std::span<const std::uint8_t> policy,
                 double gamma,
                 double lambda);

struct VtraceSettings {
  double gamma = 1, lambda = 1;
  double rho_max = 1, c_max = 1;
};

// V-trace (Espeholt et al. 2018, eq. 1, with lambda as in its remark 2), w_t = exp(log_w_t):
//   delta_t = min(rho_max, w_t)(r_t + gamma V_next - V_t)
//   v_t = V_t + delta_t + gamma lambda min(c_max, w_t)(v_next - V_next); target = v_t
//   A_t = r_t + gamma (lambda v_next + (1 - lambda) V_next) - V_t, without a weight of its own
// With all w = 1 and both bounds 1 the bits of `gae`.
TokenReturns vtrace(std::span<const double> rewards,
                    std::span<const double> values,
                    std::span<const double> log_w,
                    std::span<const std::uint8_t> policy,
                    const VtraceSettings& settings);

// A_t = sum over s >= t of gamma^(s - t) r_s, s and t counting policy tokens.
std::vector<double> rewards_to_go(std::span<const double> rewards,
                                  std::span<const std::uint8_t> policy,
                                  double gamma);

}  // namespace troupe::learn
