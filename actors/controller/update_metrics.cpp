#include "actors/controller/update_metrics.hpp"

#include "runtime/config/reward_names.hpp"
#include "runtime/core/moments.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

namespace troupe::actors::controller {
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
  std::vector<double> means;
  std::uint64_t tokens = 0, samples = 0, truncated = 0;
  for (const GroupStatus& group : statuses.groups) {
    means.push_back(group.mean_score);
    tokens += group.tokens;
    samples += group.samples;
    truncated += group.truncated;
  }
  const auto add = [&metrics](std::string_view figure, double value) {
    metrics.emplace_back(config::reward_figure(figure), value);
  };
  const core::Moments moments = core::moments_of(means);
  add("mean", moments.mean);
  add("group_std", moments.deviation);
  add("group_min", moments.low);
  add("group_max", moments.high);
  add("missing", static_cast<double>(missing_scores(statuses)));
  if (statuses.rewards.size() > 1) {
    for (const auto& [name, value] : statuses.rewards)
      metrics.emplace_back("reward/" + name, value);
  }
  for (const auto& [name, value] : statuses.extras)
    metrics.emplace_back(config::reward_figure("extra") + "/" + name, value);
  for (const auto& [name, value] : statuses.lengths)
    add(name, value);
  const double answers = static_cast<double>(std::max<std::uint64_t>(samples, 1));
  metrics.emplace_back("response/length_mean", static_cast<double>(tokens) / answers);
  metrics.emplace_back("response/clip_ratio", static_cast<double>(truncated) / answers);
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

}  // namespace troupe::actors::controller
