// Estimators of the KL in the reward, and the steered coefficient. Conventions: docs/algorithms.md,
// step 4.
#include "runtime/learn/advantage/kl_control.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {

TEST(RewardKl, IsTheEstimatorOfTheClampedDifference) {
  const double d = std::log(2.0);
  EXPECT_DOUBLE_EQ(reward_kl("k1", d), d);
  EXPECT_DOUBLE_EQ(reward_kl("k2", d), d * d / 2);
  EXPECT_NEAR(reward_kl("k3", d), 0.5 - 1 + d, 1e-15);
  EXPECT_EQ(reward_kl("k1", 12), 10.0);
  EXPECT_EQ(reward_kl("k1", -12), -10.0);
  EXPECT_EQ(reward_kl("k2", -12), 50.0);
}

TEST(SteeredKlCoef, MovesByAtMostAFifth) {
  EXPECT_EQ(steered_kl_coef(0.1, 9, 0, 1000, 10000), 0.1);  // no target
  EXPECT_NEAR(steered_kl_coef(0.1, 6.6, 6, 1000, 10000), 0.1 * (1 + 0.1 * 0.1), 1e-15);
  EXPECT_NEAR(steered_kl_coef(0.1, 60, 6, 1000, 10000), 0.1 * (1 + 0.2 * 0.1), 1e-15);
  EXPECT_NEAR(steered_kl_coef(0.1, 0, 6, 1000, 10000), 0.1 * (1 - 0.2 * 0.1), 1e-15);
}

}  // namespace troupe::learn
