// The paired bootstrap on cases whose answer is known.
#include "runtime/learn/evaluation.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {

TEST(PairedBootstrap, EqualDifferencesGiveAPoint) {
  const auto interval = paired_bootstrap({0, 0.25, 0.5}, {0.25, 0.5, 0.75}, 1000, 1);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->mean, 0.25);
  EXPECT_DOUBLE_EQ(interval->low, 0.25);
  EXPECT_DOUBLE_EQ(interval->high, 0.25);
}

TEST(PairedBootstrap, WidthFollowsTheNormalTheory) {
  core::Rng rng(3);
  std::vector<double> before(400, 0.0), after(400);
  double sum = 0, squares = 0;
  for (double& value : after) {
    value = 0.3 + rng.next_normal();
    sum += value;
    squares += value * value;
  }
  const double mean = sum / 400, error = std::sqrt((squares / 400 - mean * mean) / 400);
  const auto interval = paired_bootstrap(before, after, 10000, 2);
  EXPECT_NEAR(interval->low, mean - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(interval->high, mean + 1.96 * error, 0.1 * error);
}

TEST(PairedBootstrap, RefusesUnpairedInput) {
  EXPECT_FALSE(paired_bootstrap({0, 1}, {0}, 1000, 1));
  EXPECT_FALSE(paired_bootstrap({0}, {0}, 1000, 1));
}

}  // namespace troupe::learn
