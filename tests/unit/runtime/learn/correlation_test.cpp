// Correlations on values worked out by hand.
#include "runtime/learn/correlation.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {
namespace {

TEST(Correlation, PearsonByHand) {
  // Deviations (-1, 0, 1) and (-2, -1, 3) / 1: covariance 5, squares 2 and 14.
  EXPECT_DOUBLE_EQ(*pearson(std::vector<double>{1, 2, 3}, std::vector<double>{0, 1, 5}),
                   5 / std::sqrt(28.0));
  EXPECT_DOUBLE_EQ(*pearson(std::vector<double>{1, 2, 4}, std::vector<double>{-2, -4, -8}), -1.0);
  EXPECT_FALSE(pearson(std::vector<double>{1}, std::vector<double>{2}));
  EXPECT_FALSE(pearson(std::vector<double>{1, 1}, std::vector<double>{2, 3})) << "no spread";
}

TEST(Correlation, SpearmanGoesByRanksAndTiesShareThem) {
  EXPECT_EQ(ranks_of(std::vector<double>{5, 1, 5, 7}), (std::vector<double>{2.5, 1, 2.5, 4}));
  EXPECT_DOUBLE_EQ(*spearman(std::vector<double>{1, 2, 3}, std::vector<double>{1, 10, 1000}), 1.0);
  // Ranks (1, 2.5, 2.5, 4) and (1, 2, 4, 3): covariance 3.5 + ..., by hand
  // deviations (-1.5, 0, 0, 1.5) and (-1.5, -0.5, 1.5, 0.5): 2.25 + 0.75 = 3; 4.5 and 5.
  EXPECT_DOUBLE_EQ(*spearman(std::vector<double>{1, 5, 5, 7}, std::vector<double>{0, 1, 3, 2}),
                   3 / std::sqrt(4.5 * 5.0));
  EXPECT_FALSE(spearman(std::vector<double>{2, 2, 2}, std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace troupe::learn
