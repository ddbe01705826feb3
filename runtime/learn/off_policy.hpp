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

// Whether the objective's own ratio, or weight, is pi/mu already, so that no correction may bring
// another.
bool has_behaviour_ratio(ObjectiveKind kind);
// Whether it brings min(rho, C) itself.
bool is_decoupled(ObjectiveKind kind);
// Whether the correction multiplies by rho; else it only keeps or drops.
bool carries_rho(CorrectionKind kind);

// Of a micro-batch at its current log-probs. With rho_t = exp(clamp(l_p - l_mu, +-20)), per token t
// of a sample of T tokens:
//   kDecoupled, kA3po   min(rho_t, C)
//   kCispo              min(pi_t/mu_t, cispo_max)
//   kTopr               1 where A > 0, else min(prod pi/mu, 1)
// times the correction:
//   kTis    min(rho_t, high)              kSeqTis  min(prod rho, high)
//   kMis    rho_t, 0 above high           kIcepop  rho_t, 0 outside [low, high]
//   kGeoRs  1 if exp(mean log rho) is in [low, high], else 0
//   kM2po   batch.keep                    kOpsm    0 where A < 0 and mean(l_mu - l) > high
// The KL term is weighted by min(pi/mu, B) with the objectives that count on older tokens (all but
// kPpo, kGspo, kReinforce and kOnlineDpo without a correction). B is the bound of the truncation in
// use: high of kTis, kSeqTis, kMis, kIcepop; cispo_max of kCispo; else C.
OffPolicy off_policy(const AlgoSettings& algo,
                     const TokenBatch& batch,
                     std::span<const double> logprobs);

// M2PO (Zheng et al. 2025): drops the tokens of largest (log rho)^2 until the mean of the others is
// at most `tau`. `log_rho` of all tokens of an update; returns 1 (kept) or 0 for each. Of equal
// ones the later goes first.
std::vector<double> second_moment_mask(std::span<const double> log_rho, double tau);

}  // namespace troupe::learn
