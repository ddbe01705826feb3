#include "runtime/learn/advantage/advantage.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::learn {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

core::Result<std::vector<double>> group_advantages(Chosen<Estimator> estimator,
                                                   const GroupScores& group,
                                                   const std::string& name) {
  const auto scores = group.scores;
  if (estimator->compares_samples() && scores.size() < 2) {
    return core::fail(
        core::ErrorCode::kInvalidArgument,
        "group of " + name + " has " + std::to_string(scores.size()) + " finished sample(s)",
        "a group advantage needs at least 2 (--rollout.n_samples_per_prompt)");
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) {
      return core::fail(core::ErrorCode::kNumeric,
                        "the score of sample " + std::to_string(i) + " in the group of " + name +
                            " is not a finite number",
                        "check the reward");
    }
    if (estimator->divides_by_mean && scores[i] < 0) {
      return core::fail(core::ErrorCode::kNumeric,
                        "the score of sample " + std::to_string(i) + " in the group of " + name +
                            " is " + std::to_string(scores[i]) + ", and " +
                            std::string(estimator->name) +
                            " divides by the mean of scores of at least 0",
                        "give another --algo.advantage.estimator, or a reward of 0 and more");
    }
  }
  if (!estimator->compares_samples()) return std::vector<double>(scores.begin(), scores.end());
  // Equal scores give exactly 0. Their rounded mean may differ from them, so do not subtract it.
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  if (*low == *high) return std::vector<double>(scores.size(), 0.0);
  return estimator->group_step(group);
}

void whiten(std::span<double> advantages, bool divide) {
  if (advantages.empty()) return;
  const double mean = mean_of(advantages);
  double squares = 0;
  for (double& advantage : advantages) {
    advantage -= mean;
    squares += advantage * advantage;
  }
  if (!divide) return;
  const double variance = squares / static_cast<double>(advantages.size());
  const double scale = 1.0 / std::sqrt(std::max(variance, kWhitenVarianceMin));
  for (double& advantage : advantages)
    advantage *= scale;
}

}  // namespace troupe::learn
