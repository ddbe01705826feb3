// What the objectives take from older policies, all detached: the anchor l_p, the correction of
// tokens that another policy sampled, and the weights of objectives without a ratio
// (docs/algorithms.md, "Corrections"). Plain C++ on doubles, pure; the loss and its figures both
// read it, so they cannot disagree.
#pragma once

#include "runtime/learn/settings.hpp"
#include "runtime/learn/token_batch.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// Bound of a log-ratio, or of a sum of them, before it goes through exp.
inline constexpr double kLogRatioMax = 20.0;

struct OffPolicy {
  std::vector<double> anchor;  // l_p
  std::vector<double> rho;     // weight of the token before any bound: exp(l_p - l_mu), or pi/mu
  std::vector<double> weight;  // factor of the objective
  std::vector<double> kl;      // factor of the KL term
  std::int64_t cut = 0;        // tokens whose weight a bound lowered or set to 0
};

// exp of a log-ratio within that bound.
double bounded_exp(double log_ratio);

// The weights of one sample's tokens while they are being made: what the functions of objectives and
// corrections read and multiply.
struct SampleWeights {
  const AlgoSettings& algo;
  const TokenBatch& batch;
  std::span<const double> l;  // current log-probs
  OffPolicy& result;
  std::vector<bool>& lowered;  // by a bound, by token
  TokenRange tokens = {};      // the sample's

  double rho(std::size_t t) const { return result.rho[t]; }
  // The log-probs that rho stands above the behaviour's with.
  std::span<const double> weighed() const {
    return algo.objective->behaviour_ratio ? l : std::span<const double>(result.anchor);
  }
  // Over the sample, of `above` - l_mu.
  double sum_of_logs(std::span<const double> above) const;
  // Multiplies by `factor`; `plain` is what it would be without a bound.
  void multiply(std::size_t t, double factor, double plain);
};

// Of a micro-batch at its current log-probs: rho_t = exp(clamp(l_p - l_mu, +-20)), or pi/mu; the
// objective's own weight times the correction's (docs/algorithms.md has both tables). The KL term is
// weighted by min(pi/mu, B) where an objective or a correction counts on older tokens, else by 1. B
// is the bound of the truncation in use: algo.correction_high of corrections that carry rho, else
// that of the objective.
OffPolicy off_policy(const AlgoSettings& algo,
                     const TokenBatch& batch,
                     std::span<const double> logprobs);

// M2PO (Zheng et al. 2025): drops the tokens of largest (log rho)^2 until the mean of the others is
// at most `tau`. `log_rho` of all tokens of an update; returns 1 (kept) or 0 for each. Of equal
// ones the later goes first.
std::vector<double> second_moment_mask(std::span<const double> log_rho, double tau);

}  // namespace troupe::learn
