#include "runtime/learn/loss/off_policy.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/loss/loss_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::learn {
namespace {

std::vector<double> anchors(const AlgoSettings& algo,
                            const TokenBatch& batch,
                            std::span<const double> l) {
  if (algo.objective->anchor == Anchor::kBehaviour) return batch.behaviour;
  if (!batch.anchor_share.empty()) {
    TROUPE_CHECK(batch.anchor_share.size() == batch.size(), "one share per token");
    std::vector<double> anchor(l.size());
    for (std::size_t t = 0; t < l.size(); ++t) {
      const double l_mu = batch.behaviour[t];
      anchor[t] = l_mu + batch.anchor_share[t] * (l[t] - l_mu);
    }
    return anchor;
  }
  if (!batch.anchor.empty()) return batch.anchor;
  return {l.begin(), l.end()};
}

// Upper bound of the KL term's weight: that of a correction which multiplies by rho, else that of
// the objective.
double kl_bound(const AlgoSettings& algo) {
  return algo.correction.type->carries_rho ? algo.correction.high : algo.objective->bound_of(algo);
}

}  // namespace

double bounded_exp(double log_ratio) {
  return std::exp(std::clamp(log_ratio, -kLogRatioMax, kLogRatioMax));
}

double SampleWeights::sum_of_logs(std::span<const double> above) const {
  double sum = 0;
  for (std::size_t t = tokens.begin; t < tokens.end; ++t)
    sum += above[t] - batch.behaviour[t];
  return sum;
}

void SampleWeights::multiply(std::size_t t, double factor, double plain) {
  result.weight[t] *= factor;
  if (factor < plain) lowered[t] = true;
}

// The weight min(rho, bound) of decoupled and a3po, and of cispo, whose rho is pi/mu.
void truncated_rho(SampleWeights& s) {
  const double bound = s.algo.objective->bound_of(s.algo);
  for (std::size_t t = s.tokens.begin; t < s.tokens.end; ++t)
    s.multiply(t, std::min(s.rho(t), bound), s.rho(t));
}

// 1 where A > 0, else the product of pi/mu over the sample, at most 1 (topr).
void tapered_product(SampleWeights& s) {
  const double product = bounded_exp(s.sum_of_logs(s.l));
  for (std::size_t t = s.tokens.begin; t < s.tokens.end; ++t) {
    if (s.batch.advantage[t] <= 0) s.multiply(t, std::min(product, 1.0), product);
  }
}

OffPolicy off_policy(const AlgoSettings& algo,
                     const TokenBatch& batch,
                     std::span<const double> logprobs) {
  TROUPE_CHECK(logprobs.size() == batch.size() && batch.behaviour.size() == batch.size(),
               "one log-prob per token");
  const Objective& objective = *algo.objective;
  const Correction& correction = *algo.correction.type;
  const std::size_t count = batch.size();
  OffPolicy result;
  result.anchor = anchors(algo, batch, logprobs);
  result.rho.resize(count);
  result.weight.assign(count, 1.0);
  result.kl.assign(count, 1.0);
  const bool weighs_kl = objective.weighs_old_tokens() || correction.weigh != nullptr;
  const double bound = kl_bound(algo);
  for (std::size_t t = 0; t < count; ++t) {
    const double now = bounded_exp(logprobs[t] - batch.behaviour[t]);
    result.rho[t] =
        objective.behaviour_ratio ? now : bounded_exp(result.anchor[t] - batch.behaviour[t]);
    if (weighs_kl) result.kl[t] = std::min(now, bound);
  }
  std::vector<bool> lowered(count, false);
  SampleWeights sample{algo, batch, logprobs, result, lowered};
  for (const TokenRange& tokens : sample_ranges(batch)) {
    sample.tokens = tokens;
    if (objective.weigh != nullptr) objective.weigh(sample);
    if (correction.weigh != nullptr) correction.weigh(sample);
  }
  result.cut = std::count(lowered.begin(), lowered.end(), true);
  return result;
}

std::vector<double> second_moment_mask(std::span<const double> log_rho, double tau) {
  std::vector<std::size_t> order(log_rho.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto square = [&](std::size_t t) { return log_rho[t] * log_rho[t]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return square(a) < square(b); });
  // The mean of the k smallest grows with k: keep the longest prefix that stays within tau.
  std::vector<double> keep(log_rho.size(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += square(order[i]);
    if (sum > tau * static_cast<double>(i + 1)) break;
    keep[order[i]] = 1;
  }
  return keep;
}

}  // namespace troupe::learn
