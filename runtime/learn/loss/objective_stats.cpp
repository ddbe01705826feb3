#include "runtime/learn/loss/objective_stats.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

// exp(x) - 1 - x of a bounded log-ratio x: never negative, 0 at 0.
double excess(double log_ratio) {
  const double x = std::clamp(log_ratio, -kLogRatioMax, kLogRatioMax);
  return std::expm1(x) - x;
}

// log r of every token, or the mean of its sample.
std::vector<double> log_ratios_of(const AlgoSettings& algo,
                                  const TokenBatch& batch,
                                  std::span<const double> l,
                                  const std::vector<double>& anchor) {
  std::vector<double> result(l.size());
  for (std::size_t t = 0; t < l.size(); ++t)
    result[t] = l[t] - anchor[t];
  if (!algo.objective->sample_ratio) return result;
  for (const TokenRange& sample : sample_ranges(batch)) {
    double sum = 0;
    for (std::size_t t = sample.begin; t < sample.end; ++t)
      sum += result[t];
    for (std::size_t t = sample.begin; t < sample.end; ++t)
      result[t] = sum / sample.size();
  }
  return result;
}

}  // namespace

void ObjectiveStats::add(const ObjectiveStats& other) {
  ratio_min = tokens == 0 ? other.ratio_min : std::min(ratio_min, other.ratio_min);
  ratio_max = tokens == 0 ? other.ratio_max : std::max(ratio_max, other.ratio_max);
  tokens += other.tokens;
  loss += other.loss;
  clipped_low += other.clipped_low;
  clipped_high += other.clipped_high;
  clipped_dual += other.clipped_dual;
  ratio_sum += other.ratio_sum;
  rho_sum += other.rho_sum;
  rho_square_sum += other.rho_square_sum;
  rho_max = std::max(rho_max, other.rho_max);
  masked += other.masked;
  kl_old_sum += other.kl_old_sum;
  kl_rollout_sum += other.kl_rollout_sum;
  kl_ref_sum += other.kl_ref_sum;
  entropy_sum += other.entropy_sum;
  has_reference = has_reference || other.has_reference;
  has_entropy = has_entropy || other.has_entropy;
}

double ObjectiveStats::effective_sample_share() const {
  if (tokens == 0 || rho_square_sum == 0) return 0;
  return rho_sum * rho_sum / (static_cast<double>(tokens) * rho_square_sum);
}

ObjectiveStats observe(const AlgoSettings& algo,
                       const TokenBatch& batch,
                       std::span<const double> logprobs,
                       std::span<const double> entropy) {
  const OffPolicy off = off_policy(algo, batch, logprobs);
  const std::vector<double> log_ratios = log_ratios_of(algo, batch, logprobs, off.anchor);
  ObjectiveStats stats;
  stats.tokens = static_cast<std::int64_t>(batch.size());
  stats.has_reference = !batch.reference.empty();
  stats.has_entropy = !entropy.empty();
  stats.masked = off.cut;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const double l = logprobs[i];
    const double r = bounded_exp(log_ratios[i]);
    const double rho = off.rho[i];
    if (algo.objective->clips) {
      if (batch.advantage[i] < 0 && r < 1 - algo.eps_clip_low()) ++stats.clipped_low;
      if (batch.advantage[i] > 0 && r > 1 + algo.eps_clip_high()) ++stats.clipped_high;
      if (algo.dual_clip != 0 && batch.advantage[i] < 0 && r > algo.dual_clip) ++stats.clipped_dual;
    }
    stats.ratio_sum += r;
    stats.ratio_min = i == 0 ? r : std::min(stats.ratio_min, r);
    stats.ratio_max = i == 0 ? r : std::max(stats.ratio_max, r);
    stats.rho_sum += rho;
    stats.rho_square_sum += rho * rho;
    stats.rho_max = std::max(stats.rho_max, rho);
    stats.kl_old_sum += excess(l - off.anchor[i]);
    stats.kl_rollout_sum += excess(l - batch.behaviour[i]);
    if (stats.has_reference) stats.kl_ref_sum += excess(batch.reference[i] - l);
    if (stats.has_entropy) stats.entropy_sum += entropy[i];
  }
  return stats;
}

std::vector<std::pair<std::string, double>> ObjectiveStats::metrics() const {
  const double n = static_cast<double>(std::max<std::int64_t>(tokens, 1));
  std::vector<std::pair<std::string, double>> rows = {
      {"policy/clipfrac", static_cast<double>(clipped_low + clipped_high + clipped_dual) / n},
      {"policy/clipfrac_low", static_cast<double>(clipped_low) / n},
      {"policy/clipfrac_high", static_cast<double>(clipped_high) / n},
      {"policy/ratio_mean", ratio_sum / n},
      {"policy/ratio_min", ratio_min},
      {"policy/ratio_max", ratio_max},
      {"kl/old", kl_old_sum / n},
      {"kl/rollout_train", kl_rollout_sum / n},
      {"async/ess", effective_sample_share()},
      {"async/rho_mean", rho_sum / n},
      {"async/rho_max", rho_max},
      {"async/masked_share", static_cast<double>(masked) / n},
  };
  if (clipped_dual > 0) {
    rows.emplace_back("policy/clipfrac_dual", static_cast<double>(clipped_dual) / n);
  }
  if (has_reference) rows.emplace_back("kl/ref", kl_ref_sum / n);
  if (has_entropy) rows.emplace_back("policy/entropy", entropy_sum / n);
  return rows;
}

}  // namespace troupe::learn
