// Win rates with standard error on values worked out by hand, and that both orders agree.
#include "apps/troupe/batch/comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::app {
namespace {

std::vector<ComparedPair> exchanged(std::vector<ComparedPair> pairs) {
  for (ComparedPair& pair : pairs) {
    std::swap(pair.score_a, pair.score_b);
    std::swap(pair.length_a, pair.length_b);
  }
  return pairs;
}

TEST(Comparison, CountsWinsTiesAndLosses) {
  const std::vector<ComparedPair> pairs = {{1.0, 0.0, 10, 4, ""},
                                           {1.0, 0.0, 6, 8, ""},
                                           {0.5, 0.5, 6, 6, ""},
                                           {0.0, 1.0, 2, 2, ""},
                                           {std::nullopt, 1.0, 1, 5, ""}};
  const Comparison of = compare(pairs);
  EXPECT_EQ(of.wins, 2u);
  EXPECT_EQ(of.ties, 1u);
  EXPECT_EQ(of.losses, 1u);
  EXPECT_EQ(of.lost, 1u) << "no score is no loss";
  EXPECT_DOUBLE_EQ(of.win_rate(), 0.625);
  // Outcomes 1, 1, 0.5, 0: mean 0.625, squares of deviations 0.6875, / 3, / 4.
  EXPECT_DOUBLE_EQ(of.standard_error(), std::sqrt(0.6875 / 3 / 4));
  EXPECT_DOUBLE_EQ(of.length_a, 5.0);
  EXPECT_DOUBLE_EQ(of.length_b, 5.0);
  EXPECT_EQ(of.unequal, 2u);
  EXPECT_EQ(of.longer_wins, 1u);
}

// Whatever the counts: the two win rates add up to 1 and both standard errors are the same bits.
TEST(Comparison, SwappedOrdersAgreeToTheBit) {
  for (std::uint64_t wins = 0; wins < 40; ++wins) {
    for (std::uint64_t ties = 0; ties < 7; ++ties) {
      for (std::uint64_t losses = 0; losses < 40; ++losses) {
        Comparison one;
        one.wins = wins;
        one.ties = ties;
        one.losses = losses;
        if (one.counted() == 0) continue;
        const Comparison other = one.swapped();
        ASSERT_EQ(other.win_rate(), 1 - one.win_rate()) << wins << " " << ties << " " << losses;
        ASSERT_EQ(one.win_rate(), 1 - other.win_rate()) << wins << " " << ties << " " << losses;
        ASSERT_EQ(other.standard_error(), one.standard_error());
      }
    }
  }
}

TEST(Comparison, OfExchangedModelsIsTheSwappedOne) {
  const std::vector<ComparedPair> pairs = {
      {0.75, 0.25, 3, 9, ""}, {0.1, 0.2, 7, 5, ""}, {0.3, 0.3, 2, 2, ""}, {0.9, 0.1, 4, 1, ""}};
  const Comparison one = compare(pairs), other = compare(exchanged(pairs));
  EXPECT_EQ(other.wins, one.losses);
  EXPECT_EQ(other.win_rate(), 1 - one.win_rate());
  EXPECT_EQ(other.standard_error(), one.standard_error());
  EXPECT_EQ(other.length_a, one.length_b);
  EXPECT_EQ(other.longer_wins, one.longer_wins);
  EXPECT_DOUBLE_EQ(*other.length_pearson, *one.length_pearson);
}

// A judge that prefers the longer answer has nothing to hide behind.
TEST(Comparison, ALovingOfLengthShows) {
  std::vector<ComparedPair> pairs;
  for (int i = 1; i <= 20; ++i) {
    const double a = 5.0 + i % 7, b = 4.0 + i % 5;
    pairs.push_back({a > b ? 1.0 : a < b ? 0.0 : 0.5, a > b ? 0.0 : a < b ? 1.0 : 0.5, a, b, ""});
  }
  const Comparison of = compare(pairs);
  EXPECT_EQ(of.longer_wins, of.unequal);
  EXPECT_GT(*of.length_spearman, 0.6);
}

}  // namespace
}  // namespace troupe::app
