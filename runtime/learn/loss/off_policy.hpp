// Computes the detached off-policy terms of the loss: the anchor l_p, and the weights by which
// objective and correction weigh tokens that another policy sampled (docs/algorithms.md,
// "Corrections"). Plain C++ on doubles, pure. The loss and its metrics both read the result, so
// they cannot disagree.
#pragma once

#include "runtime/learn/loss/token_batch.hpp"
#include "runtime/learn/settings.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// A log-ratio, or a sum of them, is clamped to +- this before exp.
inline constexpr double kLogRatioMax = 20.0;

// One entry per token.
struct OffPolicy {
  std::vector<double> anchor;  // l_p
  std::vector<double> rho;     // weight of the token before any bound: exp(l_p - l_mu), or pi/mu
  std::vector<double> weight;  // factor of the objective
  std::vector<double> kl;      // factor of the KL term
  std::int64_t cut = 0;        // tokens whose weight a bound lowered or set to 0
};

// exp of a log-ratio clamped to +-kLogRatioMax.
double bounded_exp(double log_ratio);

// The token weights of one sample under construction. The `weigh` functions of objectives and
// corrections read the inputs and multiply the weights.
struct SampleWeights {
  const AlgoSettings& algo;
  const TokenBatch& batch;
  std::span<const double> l;  // current log-probs
  OffPolicy& result;
  std::vector<bool>& lowered;  // per token: a bound lowered its weight
  TokenRange tokens = {};      // the sample's tokens

  double rho(std::size_t t) const { return result.rho[t]; }
  // The log-probs in rho's numerator: l where rho is pi/mu, else the anchor.
  std::span<const double> weighed() const {
    return algo.objective->behaviour_ratio ? l : std::span<const double>(result.anchor);
  }
  // Sum over the sample's tokens of `above` - l_mu; `above` has the log-probs of all tokens.
  double sum_of_logs(std::span<const double> above) const;
  // Multiplies token t's weight by `factor`; `plain` is the factor before any bound. A smaller
  // `factor` marks the token as lowered.
  void multiply(std::size_t t, double factor, double plain);
};

// The off-policy terms of a micro-batch at its current log-probs: rho_t = exp(clamp(l_p - l_mu,
// +-20)), or pi/mu; weight = the objective's own weight times the correction's (docs/algorithms.md
// has both tables). The KL term has weight min(pi/mu, B) if the objective or the correction handles
// tokens of older policies, else 1. B is algo.correction.high for corrections that carry rho, else
// the objective's bound.
OffPolicy off_policy(const AlgoSettings& algo,
                     const TokenBatch& batch,
                     std::span<const double> logprobs);

// M2PO (Zheng et al. 2025): drops the tokens of largest (log rho)^2 until the mean of the others is
// at most `tau`. `log_rho` holds all tokens of an update; returns 1 (kept) or 0 for each. Of equal
// values the later token is dropped first.
std::vector<double> second_moment_mask(std::span<const double> log_rho, double tau);

}  // namespace troupe::learn
