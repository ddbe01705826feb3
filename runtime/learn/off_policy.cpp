// Anchors and detached weights.
#include "runtime/learn/off_policy.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::learn {
namespace {

double bounded_exp(double log_ratio) {
  return std::exp(std::clamp(log_ratio, -kLogRatioMax, kLogRatioMax));
}

std::vector<double> anchors(const AlgoSettings& algo,
                            const TokenBatch& batch,
                            std::span<const double> l) {
  if (algo.objective == ObjectiveKind::kBypass) return batch.behaviour;
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

// The KL term is held to the bound of the truncation in use; those that keep or drop have none of
// their own and take that of the decoupled objectives.
double kl_bound(const AlgoSettings& algo) {
  if (carries_rho(algo.correction)) return algo.correction_high;
  if (algo.objective == ObjectiveKind::kCispo) return algo.cispo_max;
  return algo.correction_max;
}

// Builds the weights of one batch.
class Weigher {
 public:
  Weigher(const AlgoSettings& algo, const TokenBatch& batch, std::span<const double> l)
      : algo_(algo), batch_(batch), l_(l) {}

  OffPolicy run() {
    result_.anchor = anchors(algo_, batch_, l_);
    const std::size_t count = batch_.size();
    result_.rho.resize(count);
    result_.weight.assign(count, 1.0);
    result_.kl.assign(count, 1.0);
    lowered_.assign(count, false);
    const bool weighs_kl = has_behaviour_ratio(algo_.objective) || is_decoupled(algo_.objective) ||
                           algo_.correction != CorrectionKind::kNone;
    const double bound = kl_bound(algo_);
    for (std::size_t t = 0; t < count; ++t) {
      const double now = bounded_exp(l_[t] - batch_.behaviour[t]);
      result_.rho[t] = has_behaviour_ratio(algo_.objective)
                           ? now
                           : bounded_exp(result_.anchor[t] - batch_.behaviour[t]);
      if (weighs_kl) result_.kl[t] = std::min(now, bound);
    }
    for (const TokenRange& sample : sample_ranges(batch_)) {
      own_weight(sample);
      correct(sample);
    }
    result_.cut = std::count(lowered_.begin(), lowered_.end(), true);
    return std::move(result_);
  }

 private:
  // Multiplies by `factor`; `plain` is what it would be without a bound.
  void multiply(std::size_t t, double factor, double plain) {
    result_.weight[t] *= factor;
    if (factor < plain) lowered_[t] = true;
  }

  // The log-probs that rho stands above the behaviour's with.
  std::span<const double> weighed() const {
    return has_behaviour_ratio(algo_.objective) ? l_ : std::span<const double>(result_.anchor);
  }

  double sum_of_logs(const TokenRange& sample, std::span<const double> above) const {
    double sum = 0;
    for (std::size_t t = sample.begin; t < sample.end; ++t)
      sum += above[t] - batch_.behaviour[t];
    return sum;
  }

  void own_weight(const TokenRange& sample) {
    if (is_decoupled(algo_.objective)) {
      for (std::size_t t = sample.begin; t < sample.end; ++t)
        multiply(t, std::min(result_.rho[t], algo_.correction_max), result_.rho[t]);
    } else if (algo_.objective == ObjectiveKind::kCispo) {
      for (std::size_t t = sample.begin; t < sample.end; ++t)
        multiply(t, std::min(result_.rho[t], algo_.cispo_max), result_.rho[t]);
    } else if (algo_.objective == ObjectiveKind::kTopr) {
      const double product = bounded_exp(sum_of_logs(sample, l_));
      for (std::size_t t = sample.begin; t < sample.end; ++t) {
        if (batch_.advantage[t] <= 0) multiply(t, std::min(product, 1.0), product);
      }
    }
  }

  void correct(const TokenRange& sample) {
    const double low = algo_.correction_low, high = algo_.correction_high;
    const auto each = [&](auto factor, bool carries) {
      for (std::size_t t = sample.begin; t < sample.end; ++t)
        multiply(t, factor(t), carries ? result_.rho[t] : 1.0);
    };
    switch (algo_.correction) {
      case CorrectionKind::kNone:
        return;
      case CorrectionKind::kTis:
        return each([&](std::size_t t) { return std::min(result_.rho[t], high); }, true);
      case CorrectionKind::kSeqTis: {
        const double product = bounded_exp(sum_of_logs(sample, weighed()));
        for (std::size_t t = sample.begin; t < sample.end; ++t)
          multiply(t, std::min(product, high), product);
        return;
      }
      case CorrectionKind::kMis:
        return each([&](std::size_t t) { return result_.rho[t] > high ? 0 : result_.rho[t]; },
                    true);
      case CorrectionKind::kIcepop:
        return each(
            [&](std::size_t t) {
              const double rho = result_.rho[t];
              return rho < low || rho > high ? 0 : rho;
            },
            true);
      case CorrectionKind::kGeoRs: {
        const double mean = bounded_exp(sum_of_logs(sample, weighed()) / sample.size());
        const double kept = mean < low || mean > high ? 0 : 1;
        return each([&](std::size_t) { return kept; }, false);
      }
      case CorrectionKind::kM2po:
        if (batch_.keep.empty()) return;
        return each([&](std::size_t t) { return batch_.keep[t]; }, false);
      case CorrectionKind::kOpsm: {
        const bool far = -sum_of_logs(sample, l_) / sample.size() > high;
        return each([&](std::size_t t) { return far && batch_.advantage[t] < 0 ? 0.0 : 1.0; },
                    false);
      }
    }
  }

  const AlgoSettings& algo_;
  const TokenBatch& batch_;
  std::span<const double> l_;
  OffPolicy result_;
  std::vector<bool> lowered_;
};

}  // namespace

bool has_behaviour_ratio(ObjectiveKind kind) {
  return kind == ObjectiveKind::kBypass || kind == ObjectiveKind::kCispo ||
         kind == ObjectiveKind::kTopr;
}

bool is_decoupled(ObjectiveKind kind) {
  return kind == ObjectiveKind::kDecoupled || kind == ObjectiveKind::kA3po;
}

bool carries_rho(CorrectionKind kind) {
  return kind == CorrectionKind::kTis || kind == CorrectionKind::kSeqTis ||
         kind == CorrectionKind::kMis || kind == CorrectionKind::kIcepop;
}

OffPolicy off_policy(const AlgoSettings& algo,
                     const TokenBatch& batch,
                     std::span<const double> logprobs) {
  TROUPE_CHECK(logprobs.size() == batch.size() && batch.behaviour.size() == batch.size(),
               "one log-prob per token");
  return Weigher(algo, batch, logprobs).run();
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
