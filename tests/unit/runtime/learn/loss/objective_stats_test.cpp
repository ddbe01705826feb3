// Hand-worked diagnostics.
#include "runtime/learn/loss/objective_stats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

AlgoSettings decoupled() {
  AlgoSettings algo;
  algo.objective = "decoupled";
  algo.eps_clip_low_high = {0.2, 0.3};
  algo.correction_max = 2.0;
  return algo;
}

std::map<std::string, double> table(const ObjectiveStats& stats) {
  std::map<std::string, double> rows;
  for (const auto& [name, value] : stats.metrics())
    rows[name] = value;
  return rows;
}

}  // namespace

TEST(ObjectiveStats, CountsOnlyTokensWhoseGradientTheClipRemoves) {
  TokenBatch batch;
  // Above with A > 0 once, above with A < 0 twice, below with A < 0 three times, with A > 0 four.
  batch.advantage = {1, -1, -1, -1, -1, -1, 1, 1, 1, 1};
  batch.anchor = Values(10, -1);
  batch.behaviour = Values(10, -1);
  Values l(10, -1 + std::log(0.5));
  for (int i = 0; i < 3; ++i)
    l[static_cast<std::size_t>(i)] = -1 + std::log(1.5);
  const auto stats = observe(decoupled(), batch, l, {});
  EXPECT_EQ(stats.clipped_high, 1);
  EXPECT_EQ(stats.clipped_low, 3);
  auto rows = table(stats);
  EXPECT_NEAR(rows["policy/clipfrac"], 0.4, 1e-15);
  EXPECT_NEAR(rows["policy/ratio_mean"], 0.8, 1e-12);
  EXPECT_NEAR(rows["policy/ratio_min"], 0.5, 1e-12);
  EXPECT_NEAR(rows["policy/ratio_max"], 1.5, 1e-12);
}

TEST(ObjectiveStats, EffectiveSampleShareAndMaskedShare) {
  // Weights 1, 1, 4: (6)^2 / (3 * 18) = 2/3; one of three is above C = 2.
  TokenBatch batch;
  batch.advantage = {1, 1, 1};
  batch.anchor = Values(3, -1);
  batch.behaviour = {-1, -1, -1 - std::log(4.0)};
  const auto stats = observe(decoupled(), batch, batch.anchor, {});
  EXPECT_NEAR(stats.effective_sample_share(), 2.0 / 3, 1e-14);
  EXPECT_EQ(stats.masked, 1);
  EXPECT_NEAR(stats.rho_max, 4.0, 1e-12);
  auto uncorrected = decoupled();
  uncorrected.objective = "ppo";
  EXPECT_EQ(observe(uncorrected, batch, batch.anchor, {}).masked, 0);
}

TEST(ObjectiveStats, DivergencesAreZeroOnEqualPoliciesAndPositiveElsewhere) {
  TokenBatch batch;
  batch.advantage = {1, 1};
  batch.behaviour = {-0.5, -2};
  batch.reference = {-0.5, -2};
  auto rows = table(observe(decoupled(), batch, batch.behaviour, Values{1.0, 2.0}));
  EXPECT_EQ(rows["kl/rollout_train"], 0.0);
  EXPECT_EQ(rows["kl/ref"], 0.0);
  EXPECT_EQ(rows["async/ess"], 1.0);
  EXPECT_EQ(rows["policy/entropy"], 1.5);
  // l - l_ref = l - l_mu = log 2 on one token: 1/2 - 1 + log 2, and 2 - 1 - log 2.
  rows = table(observe(decoupled(), batch, Values{-0.5 + std::log(2.0), -2}, {}));
  EXPECT_NEAR(rows["kl/ref"], (std::log(2.0) - 0.5) / 2, 1e-14);
  EXPECT_NEAR(rows["kl/rollout_train"], (1 - std::log(2.0)) / 2, 1e-14);
  EXPECT_EQ(rows.count("policy/entropy"), 0u);
}

TEST(ObjectiveStats, AddingPartsGivesTheWhole) {
  TokenBatch all, first, second;
  Values l;
  for (int i = 0; i < 5; ++i) {
    for (TokenBatch* batch : {&all, i < 2 ? &first : &second}) {
      batch->advantage.push_back(i - 2);
      batch->anchor.push_back(-1);
      batch->behaviour.push_back(-1 + 0.2 * i);
      batch->reference.push_back(-1.3);
    }
    l.push_back(-1.5 + 0.3 * i);
  }
  ObjectiveStats sum;
  sum.add(observe(decoupled(), first, Values(l.begin(), l.begin() + 2), {}));
  sum.add(observe(decoupled(), second, Values(l.begin() + 2, l.end()), {}));
  const auto rows = table(sum);
  for (const auto& [name, value] : table(observe(decoupled(), all, l, {}))) {
    EXPECT_NEAR(rows.at(name), value, 1e-14) << name;
  }
}

}  // namespace troupe::learn
