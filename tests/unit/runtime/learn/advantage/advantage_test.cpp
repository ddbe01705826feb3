// Hand-worked group steps and whitening. Conventions: docs/algorithms.md, steps 5 and 7.
#include "runtime/learn/advantage/advantage.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string_view>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

Values advantages(Chosen<Estimator> kind, const Values& scores) {
  const Values tokens(scores.size(), 5);
  auto result = group_advantages(kind, {scores, tokens}, "update 0, slot 0");
  EXPECT_TRUE(result.has_value());
  return result ? *result : Values{};
}

}  // namespace

TEST(GroupAdvantages, EachEstimatorHasHandWorkedValues) {
  // Scores 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14, std_{n-1} = sqrt(7) = 2.6457513110645906.
  const double scale = 2.6457513110645906 + 1e-4;
  const Values centred = {-2, -1, 3}, scores = {1, 2, 6};
  const std::map<std::string_view, Values> worked = {
      {"group_norm", {-2 / scale, -1 / scale, 3 / scale}},
      {"dr_grpo", centred},
      {"reinforce_baseline", centred},
      {"maxrl", {-2.0 / 3, -1.0 / 3, 1}},
      {"opo", centred},  // all of one length
      {"gpg", centred},
      {"rloo", {-3, -1.5, 4.5}},  // 1 - 4, 2 - 3.5, 6 - 1.5
      {"reinforce", scores},
      {"gae", scores},
      {"vtrace", scores},
  };
  for (const Estimator& estimator : Estimator::all()) {
    const auto found = worked.find(estimator.name);
    ASSERT_NE(found, worked.end()) << estimator.name << " needs hand-worked values here";
    const Values got = advantages(estimator, scores);
    for (std::size_t i = 0; i < scores.size(); ++i)
      EXPECT_NEAR(got[i], found->second[i], 1e-12) << estimator.name;
  }
}

TEST(GroupAdvantages, EqualScoresGiveExactZeros) {
  // The mean of three 0.1 is not 0.1 in binary: the rounding must not become an advantage.
  for (const Estimator& kind : Estimator::all()) {
    if (!kind.compares_samples()) continue;
    for (const double value : {0.1, 0.7, -3.3, 1e-9, 0.0}) {
      if (kind.divides_by_mean && value < 0) continue;
      EXPECT_EQ(advantages(kind, {value, value, value}), (Values{0, 0, 0}));
    }
  }
}

// Lengths 1, 3 and 6: the baseline is (1 + 6 + 36) / 10 = 4.3.
TEST(GroupAdvantages, OpoWeighsTheBaselineByLength) {
  const Values scores = {1, 2, 6}, tokens = {1, 3, 6};
  const auto got = group_advantages("opo", {scores, tokens}, "update 0, slot 0");
  ASSERT_TRUE(got);
  const Values worked = {-3.3, -2.3, 1.7};
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR((*got)[i], worked[i], 1e-12);
}

// One of four right: its advantage is 3, that of the others -1, whatever the scale of the scores.
TEST(GroupAdvantages, MaxrlTakesNoScoreBelowZero) {
  EXPECT_EQ(advantages("maxrl", {0, 2, 0, 0}), (Values{-1, 3, -1, -1}));
  EXPECT_EQ(advantages("maxrl", {0, 0}), (Values{0, 0}));
  const Values scores = {1, -0.5}, tokens = {1, 1};
  const auto refused = group_advantages("maxrl", {scores, tokens}, "update 0, slot 3");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kNumeric);
  EXPECT_NE(refused.error().message.find("sample 1 in the group of update 0, slot 3 is -0.5"),
            std::string::npos)
      << refused.error().message;
}

TEST(GroupAdvantages, RefusesAGroupOfOneAndNamesIt) {
  for (const Estimator& kind : Estimator::all()) {
    if (!kind.compares_samples()) continue;
    const auto result = group_advantages(kind, {Values{1}, Values{2}}, "update 4, slot 9");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, core::ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message.find("update 4, slot 9"), std::string::npos);
  }
}

TEST(GroupAdvantages, RefusesAScoreThatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto result =
        group_advantages("group_norm", {Values{1, bad}, Values{2, 2}}, "update 0, slot 1");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, core::ErrorCode::kNumeric);
  }
}

TEST(GroupAdvantages, OtherEstimatorsTakeTheScoresAsTheyAre) {
  for (const Estimator& kind : Estimator::all()) {
    if (kind.compares_samples()) continue;
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
