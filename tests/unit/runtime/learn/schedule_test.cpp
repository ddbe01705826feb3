// Hand-worked learning rates.
#include "runtime/learn/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {
namespace {

OptimSettings scheduled(double lr, double warmup, double minimum) {
  OptimSettings settings;
  settings.lr = lr;
  settings.warmup_ratio = warmup;
  settings.lr_min_ratio = minimum;
  return settings;
}

}  // namespace

TEST(Schedule, WarmsUpLinearlyThenFollowsTheCosine) {
  const auto rate = [](std::int64_t step) {
    return learning_rate(scheduled(1.0, 0.2, 0.1), 10, step);
  };
  EXPECT_DOUBLE_EQ(rate(0), 0.5);
  EXPECT_DOUBLE_EQ(rate(1), 1.0);
  // Halfway down the cosine: s = 6, (6-2)/(10-2) = 1/2.
  EXPECT_NEAR(rate(5), 0.1 + 0.9 * 0.5, 1e-15);
  // A quarter: s = 4, cos(pi/4) = sqrt(1/2).
  EXPECT_NEAR(rate(3), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)), 1e-15);
  EXPECT_DOUBLE_EQ(rate(9), 0.1);
  EXPECT_DOUBLE_EQ(rate(50), 0.1);
}

TEST(Schedule, RoundsTheWarmUpUpwards) {
  EXPECT_DOUBLE_EQ(learning_rate(scheduled(1, 0.03, 0.1), 40, 0), 0.5);  // of 1.2 steps: two
  EXPECT_DOUBLE_EQ(learning_rate(scheduled(1, 0.03, 0.1), 40, 1), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(scheduled(1, 0.03, 0.1), 1, 0), 1.0);
  EXPECT_LT(learning_rate(scheduled(1, 0.0, 0.1), 40, 0), 1.0);  // none
}

TEST(Schedule, NeverRisesAfterTheWarmUp) {
  const auto rate = [](std::int64_t step) {
    return learning_rate(scheduled(3e-6, 0.03, 0.1), 137, step);
  };
  for (std::int64_t step = 5; step < 140; ++step) {
    EXPECT_LE(rate(step), rate(step - 1));
    EXPECT_GE(rate(step), 3e-7 * (1 - 1e-12));
  }
}

TEST(Schedule, StaysConstantWithoutATotal) {
  const auto rate = [](std::int64_t step) {
    return learning_rate(scheduled(2e-5, 0.03, 0.1), 0, step);
  };
  EXPECT_EQ(rate(0), 2e-5);
  EXPECT_EQ(rate(1000), 2e-5);
}

TEST(Schedule, WarmUpOfTheWholeRunEndsAtThePeak) {
  const auto rate = [](std::int64_t step) {
    return learning_rate(scheduled(1.0, 1.0, 0.1), 4, step);
  };
  EXPECT_DOUBLE_EQ(rate(0), 0.25);
  EXPECT_DOUBLE_EQ(rate(3), 1.0);
}

}  // namespace troupe::learn
