// Hand-worked anchors and weights. Conventions: docs/algorithms.md, "Corrections".
#include "runtime/learn/loss/off_policy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string_view>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

// Two samples, of two and one token, with pi_p/mu = 0.5, 3 and 4, and l = l_p.
TokenBatch three_tokens(Values* l) {
  TokenBatch batch;
  batch.advantage = {-1, 1, -1};
  batch.weight = {1, 1, 1};
  batch.behaviour = {-2, -2, -2};
  batch.anchor = {-2 + std::log(0.5), -2 + std::log(3.0), -2 + std::log(4.0)};
  batch.sample_ends = {2, 3};
  *l = batch.anchor;
  return batch;
}

AlgoSettings corrected_settings(Chosen<Objective> objective,
                                Chosen<Correction> correction = "none") {
  AlgoSettings algo;
  algo.objective = objective;
  algo.correction.type = correction;
  algo.correction.low = 0.8;
  algo.correction.high = 3.5;
  algo.correction_max = 2;
  algo.cispo_max = 3.5;
  return algo;
}

void expect_weights(const AlgoSettings& algo, const Values& wanted, std::int64_t cut) {
  Values l;
  const TokenBatch batch = three_tokens(&l);
  const OffPolicy off = off_policy(algo, batch, l);
  for (std::size_t t = 0; t < 3; ++t)
    EXPECT_NEAR(off.weight[t], wanted[t], 1e-14) << "token " << t;
  EXPECT_EQ(off.cut, cut);
}

}  // namespace

TEST(OffPolicy, EachCorrectionHasHandWorkedWeights) {
  struct Worked {
    Values weights;
    std::int64_t cut;
  };
  const std::map<std::string_view, Worked> worked = {
      {"none", {{1, 1, 1}, 0}},
      {"tis", {{0.5, 3, 3.5}, 1}},
      {"seq_tis", {{1.5, 1.5, 3.5}, 1}},
      {"mis", {{0.5, 3, 0}, 1}},
      {"icepop", {{0, 3, 0}, 2}},
      {"geo_rs", {{1, 1, 0}, 1}},  // geometric means sqrt(1.5) = 1.22 and 4
      {"m2po", {{1, 1, 1}, 0}},    // without a mask; with one below
      {"opsm", {{1, 1, 1}, 0}},    // both samples have become likelier
  };
  for (const Correction& correction : Correction::all()) {
    const auto found = worked.find(correction.name);
    ASSERT_NE(found, worked.end()) << correction.name << " needs hand-worked weights here";
    SCOPED_TRACE(correction.name);
    expect_weights(corrected_settings("ppo", correction), found->second.weights, found->second.cut);
  }
}

TEST(OffPolicy, OpsmDropsNegativeAdvantagesOfSamplesThatThePolicyLeft) {
  auto algo = corrected_settings("ppo", "opsm");
  algo.correction.high = 0.3;
  Values l;
  TokenBatch batch = three_tokens(&l);
  // mean log(mu/pi) of the first sample: (1 + 0) / 2 = 0.5, over the limit; of the second: -log 4.
  l = {-3, -2, -2 + std::log(4.0)};
  const OffPolicy off = off_policy(algo, batch, l);
  EXPECT_EQ(off.weight, (Values{0, 1, 1}));
  EXPECT_EQ(off.cut, 1);
}

TEST(OffPolicy, M2poReadsTheMaskOfTheUpdate) {
  Values l;
  TokenBatch batch = three_tokens(&l);
  batch.keep = {1, 0, 1};
  const auto off = off_policy(corrected_settings("ppo", "m2po"), batch, l);
  EXPECT_EQ(off.weight, (Values{1, 0, 1}));
}

TEST(OffPolicy, WeightsOfTheObjectives) {
  expect_weights(corrected_settings("decoupled"), {0.5, 2, 2}, 2);
  expect_weights(corrected_settings("cispo"), {0.5, 3, 3.5}, 1);
  // prod pi/mu 1.5 and 4: cut to 1 where A < 0.
  expect_weights(corrected_settings("topr"), {1, 1, 1}, 2);
  // A mask may stand beside the objective's own weight.
  expect_weights(corrected_settings("decoupled", "geo_rs"), {0.5, 2, 0}, 2);
}

TEST(OffPolicy, ToprWeighsUnlikelyNegativesByTheirProduct) {
  Values l;
  TokenBatch batch = three_tokens(&l);
  l = {-2 + std::log(0.5), -2 + std::log(0.5), -2 + std::log(0.5)};
  const auto off = off_policy(corrected_settings("topr"), batch, l);
  EXPECT_NEAR(off.weight[0], 0.25, 1e-14);
  EXPECT_EQ(off.weight[1], 1.0);  // A > 0
  EXPECT_NEAR(off.weight[2], 0.5, 1e-14);
}

TEST(OffPolicy, AnchorOfBypassIsTheBehaviourAndOfA3poLiesBetween) {
  Values l;
  TokenBatch batch = three_tokens(&l);
  EXPECT_EQ(off_policy(corrected_settings("bypass"), batch, l).anchor, batch.behaviour);
  batch.anchor.clear();
  batch.anchor_share = {0, 0.25, 1};
  l = {-1, -1, -1};
  const auto off = off_policy(corrected_settings("a3po"), batch, l);
  EXPECT_EQ(off.anchor, (Values{-2, -1.75, -1}));
  EXPECT_NEAR(off.weight[1], std::exp(0.25), 1e-14);
  EXPECT_EQ(off.weight[2], 2.0);  // e, cut to C
}

TEST(OffPolicy, KlCarriesTheTruncatedWeightWhereTokensMayBeOld) {
  Values l;
  const TokenBatch batch = three_tokens(&l);
  // pi/mu is 0.5, 3 and 4.
  const auto weights = [&](AlgoSettings algo, double bound) {
    algo.correction_max = algo.correction.high = algo.cispo_max = 100;
    if (algo.correction.type->carries_rho) {
      algo.correction.high = bound;
    } else if (algo.objective == "cispo") {
      algo.cispo_max = bound;
    } else {
      algo.correction_max = bound;
    }
    return off_policy(algo, batch, l).kl;
  };
  const auto expect_bounded = [&](const AlgoSettings& algo) {
    for (const double bound : {3.5, 2.0}) {
      const Values kl = weights(algo, bound);
      EXPECT_NEAR(kl[0], 0.5, 1e-14);
      EXPECT_NEAR(kl[1], std::min(3.0, bound), 1e-14);
      EXPECT_EQ(kl[2], bound);
    }
  };
  for (const Objective& objective : Objective::all()) {
    if (objective.weighs_old_tokens()) expect_bounded(corrected_settings(objective));
  }
  for (const Correction& correction : Correction::all()) {
    if (correction.weigh != nullptr) expect_bounded(corrected_settings("ppo", correction));
  }
  EXPECT_EQ(off_policy(corrected_settings("ppo"), batch, l).kl, (Values{1, 1, 1}));
}

TEST(SecondMomentMask, KeepsTheLongestPrefixWithinTheMean) {
  const Values log_rho = {0.1, -1, 0.2, 0.5, 0};
  EXPECT_EQ(second_moment_mask(log_rho, 100), (Values{1, 1, 1, 1, 1}));
  // Squares sorted 0 .01 .04 .25 1; prefix means 0 .005 .0167 .075 .26.
  EXPECT_EQ(second_moment_mask(log_rho, 0.075), (Values{1, 0, 1, 1, 1}));
  EXPECT_EQ(second_moment_mask(log_rho, 0.02), (Values{1, 0, 1, 0, 1}));
  EXPECT_EQ(second_moment_mask(log_rho, 0), (Values{0, 0, 0, 0, 1}));
}

}  // namespace troupe::learn
