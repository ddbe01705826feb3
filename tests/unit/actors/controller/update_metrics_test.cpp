// The figures of an update that follow from its groups, worked out by hand, and their names.
#include "actors/controller/update_metrics.hpp"

#include "runtime/config/reward_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace troupe::actors::controller {
namespace {

GroupStatuses statuses_with(const std::vector<double>& means) {
  GroupStatuses statuses;
  for (const double mean : means) {
    GroupStatus& group = statuses.groups.emplace_back();
    group.mean_score = mean;
    group.samples = 2;
    group.tokens = 10;
  }
  return statuses;
}

Metrics metrics_of(const GroupStatuses& statuses) {
  Metrics metrics;
  add_reward_metrics(statuses, metrics);
  return metrics;
}

double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [own, value] : metrics)
    if (own == name) return value;
  ADD_FAILURE() << "no " << name;
  return 0;
}

}  // namespace

TEST(UpdateMetrics, AreThoseOfTheGroupsMeans) {
  const Metrics metrics = metrics_of(statuses_with({0, 0.5, 1, 0.5}));
  EXPECT_DOUBLE_EQ(value_of(metrics, "reward/mean"), 0.5);
  EXPECT_DOUBLE_EQ(value_of(metrics, "reward/group_std"), std::sqrt(0.125));
  EXPECT_EQ(value_of(metrics, "reward/group_min"), 0);
  EXPECT_EQ(value_of(metrics, "reward/group_max"), 1);
  EXPECT_EQ(value_of(metrics, "response/length_mean"), 5);
}

// Sums of squares would say 0.
TEST(UpdateMetrics, SmallDifferencesOfLargeRewardsAreSeen) {
  const Metrics metrics = metrics_of(statuses_with({1e8, 1e8 + 1e-7, 1e8 + 2e-7}));
  EXPECT_NEAR(value_of(metrics, "reward/group_std"), 1e-7 * std::sqrt(2.0 / 3), 1e-8);
  EXPECT_EQ(value_of(metrics_of(statuses_with({0.3, 0.3, 0.3})), "reward/group_std"), 0);
}

TEST(UpdateMetrics, HugeRewardsHaveFiniteFigures) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const Metrics metrics = metrics_of(statuses_with({kMost, kMost, -kMost, kMost}));
  EXPECT_DOUBLE_EQ(value_of(metrics, "reward/mean"), kMost / 2);
  EXPECT_DOUBLE_EQ(value_of(metrics, "reward/group_std"), kMost * std::sqrt(0.75));
}

// Every figure that is not a reward's own has a name that no reward can have.
TEST(UpdateMetrics, NoRewardTakesTheNameOfAFigure) {
  GroupStatuses statuses = statuses_with({0, 1});
  statuses.rewards = {{"a", 1.0}, {"b", 2.0}};
  statuses.extras = {{"tokens", 3.0}};
  statuses.lengths = {{"length_pearson", 0.1}, {"length_spearman", 0.2}};
  std::set<std::string> seen;
  std::size_t ours = 0;
  for (const auto& [name, value] : metrics_of(statuses)) {
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    if (!name.starts_with("reward/") || name == "reward/a" || name == "reward/b") continue;
    ++ours;
    EXPECT_NE(config::own_word_fault(name.substr(7)), "") << name;
  }
  EXPECT_EQ(ours, 8u);
}

}  // namespace troupe::actors::controller
