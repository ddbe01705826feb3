#include "runtime/learn/advantage/estimators.hpp"

#include "runtime/learn/advantage/advantage.hpp"
#include "runtime/learn/settings.hpp"

#include <array>
#include <cmath>

namespace troupe::learn {
namespace {

// The standard deviation with n - 1 as the divisor.
double deviation_of(std::span<const double> values, double mean) {
  double sum = 0;
  for (const double value : values)
    sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::vector<double> normalised(const GroupScores& group) {
  const auto scores = group.scores;
  std::vector<double> advantages(scores.size());
  const double mean = mean_of(scores);
  const double scale = deviation_of(scores, mean) + kGrpoStdFloor;
  for (std::size_t i = 0; i < scores.size(); ++i)
    advantages[i] = (scores[i] - mean) / scale;
  return advantages;
}

double over_deviation(const GroupScores& group) {
  return 1 / (deviation_of(group.scores, mean_of(group.scores)) + kGrpoStdFloor);
}

double one_over_mean(const GroupScores& group) {
  return 1 / mean_of(group.scores);
}

std::vector<double> minus(std::span<const double> scores, double baseline) {
  std::vector<double> advantages;
  for (const double score : scores)
    advantages.push_back(score - baseline);
  return advantages;
}

std::vector<double> centred(const GroupScores& group) {
  return minus(group.scores, mean_of(group.scores));
}

// The baseline of least variance where a sample's squared gradient grows with its length (Hao et
// al. 2025, eq. 5).
std::vector<double> length_weighted(const GroupScores& group) {
  double weighed = 0, tokens = 0;
  for (std::size_t i = 0; i < group.scores.size(); ++i) {
    weighed += group.tokens[i] * group.scores[i];
    tokens += group.tokens[i];
  }
  return minus(group.scores, weighed / tokens);
}

// The gradient of log of the mean score rather than of the mean (Tajwar et al. 2026).
std::vector<double> over_mean(const GroupScores& group) {
  const double mean = mean_of(group.scores);
  std::vector<double> advantages = minus(group.scores, mean);
  for (double& advantage : advantages)
    advantage /= mean;
  return advantages;
}

std::vector<double> leave_one_out(const GroupScores& group) {
  const auto scores = group.scores;
  std::vector<double> advantages;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    double others = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (j != i) others += scores[j];
    }
    advantages.push_back(scores[i] - others / static_cast<double>(scores.size() - 1));
  }
  return advantages;
}

TokenReturns discounted(const AlgoSettings& algo, const SampleRewards& sample) {
  return {rewards_to_go(sample.rewards, algo.advantage.gamma), {}};
}

TokenReturns gae_returns(const AlgoSettings& algo, const SampleRewards& sample) {
  return gae(sample.rewards, sample.values, algo.advantage.gamma, algo.advantage.lambd);
}

TokenReturns vtrace_returns(const AlgoSettings& algo, const SampleRewards& sample) {
  return vtrace(
      sample.rewards, sample.values, sample.log_w,
      {algo.advantage.gamma, algo.advantage.lambd, algo.advantage.rho_max, algo.advantage.c_max});
}

constexpr std::array kEstimators = {
    Estimator{.name = "group_norm",
              .alias = "grpo",
              .help = "(R - mean of the group) / its deviation",
              .group_step = normalised,
              .slope = over_deviation,
              .returns = discounted},
    Estimator{.name = "rloo",
              .help = "R - mean of the others of the group",
              .group_step = leave_one_out,
              .returns = discounted},
    Estimator{.name = "reinforce_baseline",
              .help = "R - mean of the group, whitened over the update",
              .whitens = true,
              .group_step = centred,
              .returns = discounted},
    Estimator{.name = "dr_grpo",
              .help = "R - mean of the group",
              .group_step = centred,
              .returns = discounted},
    Estimator{.name = "maxrl",
              .help = "(R - mean of the group) / that mean; scores of at least 0",
              .divides_by_mean = true,
              .group_step = over_mean,
              .slope = one_over_mean,
              .returns = discounted},
    Estimator{.name = "opo",
              .help = "R - mean of the group, each sample weighed by its length",
              .group_step = length_weighted,
              .returns = discounted},
    Estimator{.name = "gpg",
              .help = "R - mean of the group, scaled up for groups of equal scores",
              .rescales = true,
              .group_step = centred,
              .returns = discounted},
    Estimator{.name = "reinforce",
              .alias = "reinforce_pp",
              .help = "discounted rewards to go, whitened over the update",
              .whitens = true,
              .returns = discounted},
    Estimator{.name = "gae",
              .help = "generalised advantages over a critic's values",
              .has_critic = true,
              .whitens = true,
              .returns = gae_returns},
    Estimator{.name = "vtrace",
              .help = "gae with weights for tokens of older policies",
              .has_critic = true,
              .whitens = true,
              .reads_start = true,
              .returns = vtrace_returns},
};

}  // namespace

std::span<const Estimator> Estimator::all() {
  return kEstimators;
}

}  // namespace troupe::learn
