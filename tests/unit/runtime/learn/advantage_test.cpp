// Hand-worked group steps and whitening. Conventions: docs/algorithms.md, steps 5 and 7.
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

TEST(GroupAdvantages, OtherEstimatorsTakeTheScoresAsTheyAre) {
  for (const auto kind : {AdvantageKind::kReinforce, AdvantageKind::kGae, AdvantageKind::kVtrace}) {
    EXPECT_EQ(advantages(kind, {0.5}), (Values{0.5}));
    EXPECT_EQ(advantages(kind, {2, 2, 2}), (Values{2, 2, 2}));
  }
}

TEST(Whiten, DividesByThePopulationDeviationOverTokens) {
  // -1 on 3 tokens, 3 on 1 token: mean 0, population variance (3*1 + 9)/4 = 3.
  Values values = {-1, -1, -1, 3};
  whiten(values);
  EXPECT_NEAR(values[0], -1 / std::sqrt(3.0), 1e-15);
  EXPECT_NEAR(values[3], 3 / std::sqrt(3.0), 1e-15);
}

TEST(Whiten, EqualAdvantagesGiveZeros) {
  Values values = {2, 2, 2, 2};
  whiten(values);
  EXPECT_EQ(values, (Values{0, 0, 0, 0}));
}

TEST(Whiten, MayLeaveTheScale) {
  Values values = {1, 2, 6};
  whiten(values, false);
  EXPECT_EQ(values, (Values{-2, -1, 3}));
}

}  // namespace troupe::learn
