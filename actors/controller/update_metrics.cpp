#include "actors/controller/update_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe::actors {
namespace {

// Overwrites a metric of that name: the trainer reports some of these in optimiser steps, the
// staleness bound is in updates.
void set_metric(Metrics& metrics, const std::string& name, double value) {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&name](const auto& metric) { return metric.first == name; });
  if (found != metrics.end()) {
    found->second = value;
  } else {
    metrics.emplace_back(name, value);
  }
}

}  // namespace

std::uint64_t missing_scores(const GroupStatuses& statuses) {
  std::uint64_t missing = 0;
  for (const GroupStatus& group : statuses.groups)
    missing += group.missing;
  return missing;
}

void add_reward_metrics(const GroupStatuses& statuses, Metrics& metrics) {
  double sum = 0, squares = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::uint64_t tokens = 0, samples = 0;
  for (const GroupStatus& group : statuses.groups) {
    sum += group.mean_score;
    squares += group.mean_score * group.mean_score;
    low = std::min(low, group.mean_score);
    high = std::max(high, group.mean_score);
    tokens += group.tokens;
    samples += group.samples;
  }
  const double count = static_cast<double>(statuses.groups.size());
  const double mean = sum / count;
  metrics.emplace_back("reward/mean", mean);
  metrics.emplace_back("reward/group_std", std::sqrt(std::max(0.0, squares / count - mean * mean)));
  metrics.emplace_back("reward/group_min", low);
  metrics.emplace_back("reward/group_max", high);
  metrics.emplace_back("reward/missing", static_cast<double>(missing_scores(statuses)));
  if (statuses.rewards.size() > 1) {
    for (const auto& [name, value] : statuses.rewards)
      metrics.emplace_back("reward/" + name, value);
  }
  for (const auto& [name, value] : statuses.extras)
    metrics.emplace_back("reward/extra/" + name, value);
  for (const auto& [name, value] : statuses.lengths)
    metrics.emplace_back("reward/" + name, value);
  metrics.emplace_back(
      "response/length_mean",
      static_cast<double>(tokens) / static_cast<double>(std::max<std::uint64_t>(samples, 1)));
}

void add_staleness_metrics(const GroupStatuses& statuses, Metrics& metrics) {
  const auto& ages = statuses.staleness;
  const std::uint64_t tokens = std::accumulate(ages.begin(), ages.end(), std::uint64_t{0});
  if (tokens == 0) return;
  double sum = 0;
  std::size_t oldest = 0;
  for (std::size_t age = 0; age < ages.size(); ++age) {
    sum += static_cast<double>(age) * static_cast<double>(ages[age]);
    if (ages[age] > 0) oldest = age;
  }
  set_metric(metrics, "async/staleness_mean", sum / static_cast<double>(tokens));
  set_metric(metrics, "async/staleness_max", static_cast<double>(oldest));
  set_metric(metrics, "async/crossed", static_cast<double>(statuses.crossed));
}

}  // namespace troupe::actors
