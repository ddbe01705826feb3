// Hand-worked advantages. Conventions: docs/algorithms.md, steps 3, 5 and 7.
#include "runtime/learn/advantage.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

Values advantages(AdvantageKind kind, const Values& scores) {
  auto result = group_advantages(kind, scores, "update 0, slot 0");
  EXPECT_TRUE(result.has_value());
  return result ? *result : Values{};
}

TrainGroup group_of(std::uint32_t slot, const Values& scores, const std::vector<int>& lengths) {
  TrainGroup group;
  group.ticket.slot = slot;
  group.prompt = {1};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    TrainSample sample;
    sample.score = scores[i];
    sample.tokens.assign(static_cast<std::size_t>(lengths[i]), 7);
    group.samples.push_back(sample);
  }
  return group;
}

}  // namespace

TEST(GroupAdvantages, GrpoDividesByTheDeviationOfNMinusOne) {
  // Scores 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14, std_{n-1} = sqrt(7) = 2.6457513110645906.
  const Values got = advantages(AdvantageKind::kGrpo, {1, 2, 6});
  const double scale = 2.6457513110645906 + 1e-4;
  EXPECT_NEAR(got[0], -2 / scale, 1e-12);
  EXPECT_NEAR(got[1], -1 / scale, 1e-12);
  EXPECT_NEAR(got[2], 3 / scale, 1e-12);
  EXPECT_NEAR(got[2], 1.1338505, 1e-7);
}

TEST(GroupAdvantages, EqualScoresGiveExactZeros) {
  // The mean of three 0.1 is not 0.1 in binary: the rounding must not become an advantage.
  for (const auto kind : {AdvantageKind::kGrpo, AdvantageKind::kDrGrpo, AdvantageKind::kRloo,
                          AdvantageKind::kReinforceBaseline}) {
    for (const double value : {0.1, 0.7, -3.3, 1e-9}) {
      EXPECT_EQ(advantages(kind, {value, value, value}), (Values{0, 0, 0}));
    }
  }
}

TEST(GroupAdvantages, DrGrpoAndReinforceBaselineSubtractTheMean) {
  for (const auto kind : {AdvantageKind::kDrGrpo, AdvantageKind::kReinforceBaseline}) {
    EXPECT_EQ(advantages(kind, {1, 2, 6}), (Values{-2, -1, 3}));
  }
}

TEST(GroupAdvantages, RlooSubtractsTheMeanOfTheOthers) {
  // 1 - 4, 2 - 3.5, 6 - 1.5.
  EXPECT_EQ(advantages(AdvantageKind::kRloo, {1, 2, 6}), (Values{-3, -1.5, 4.5}));
}

TEST(GroupAdvantages, RefusesAGroupOfOneAndNamesIt) {
  for (const auto kind : {AdvantageKind::kGrpo, AdvantageKind::kDrGrpo, AdvantageKind::kRloo,
                          AdvantageKind::kReinforceBaseline}) {
    const auto result = group_advantages(kind, Values{1}, "update 4, slot 9");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, core::ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message.find("update 4, slot 9"), std::string::npos);
  }
}

TEST(GroupAdvantages, RefusesAScoreThatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto result = group_advantages(AdvantageKind::kGrpo, Values{1, bad}, "update 0, slot 1");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, core::ErrorCode::kNumeric);
  }
}

TEST(Whiten, CountsEachAdvantageOncePerToken) {
  // -1 on 3 tokens, 3 on 1 token: mean 0, population variance (3*1 + 9)/4 = 3.
  Values values = {-1, 3};
  const std::vector<std::int64_t> tokens = {3, 1};
  whiten(values, tokens);
  EXPECT_NEAR(values[0], -1 / std::sqrt(3.0), 1e-15);
  EXPECT_NEAR(values[1], 3 / std::sqrt(3.0), 1e-15);
}

TEST(Whiten, EqualAdvantagesGiveZeros) {
  Values values = {2, 2};
  const std::vector<std::int64_t> tokens = {3, 1};
  whiten(values, tokens);
  EXPECT_EQ(values, (Values{0, 0}));
}

TEST(UpdateAdvantages, ClipsScoresBeforeTheGroupStep) {
  AlgoSettings algo;
  algo.advantage = AdvantageKind::kDrGrpo;
  // 30 becomes 10, so the mean is 5. After the group step the clip would give -15 and 10 instead.
  const auto result = update_advantages(algo, {group_of(0, {0, 30}, {1, 1})});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ((*result)[0], (Values{-5, 5}));
}

TEST(UpdateAdvantages, WhitensReinforceBaselineOverTheWholeUpdate) {
  AlgoSettings algo;
  algo.advantage = AdvantageKind::kReinforceBaseline;
  const auto result =
      update_advantages(algo, {group_of(0, {0, 2}, {3, 1}), group_of(1, {1, 1}, {2, 2})});
  ASSERT_TRUE(result.has_value());
  // Per token: -1 -1 -1 1 0 0 0 0; mean -1/4, variance 4/8 - 1/16 = 7/16.
  const double scale = 1 / std::sqrt(7.0 / 16.0);
  EXPECT_NEAR((*result)[0][0], -0.75 * scale, 1e-14);
  EXPECT_NEAR((*result)[0][1], 1.25 * scale, 1e-14);
  EXPECT_NEAR((*result)[1][0], 0.25 * scale, 1e-14);
  EXPECT_NEAR((*result)[1][1], 0.25 * scale, 1e-14);
}

TEST(UpdateAdvantages, NamesTheGroupThatIsAtFault) {
  AlgoSettings algo;
  auto one = group_of(3, {1}, {2});
  one.ticket.update = 12;
  const auto result = update_advantages(algo, {group_of(0, {0, 1}, {1, 1}), one});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("update 12, slot 3"), std::string::npos);

  const auto empty = update_advantages(algo, {group_of(5, {0, 1}, {1, 0})});
  ASSERT_FALSE(empty.has_value());
  EXPECT_NE(empty.error().message.find("slot 5"), std::string::npos);
}

}  // namespace troupe::learn
