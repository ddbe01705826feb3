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
  const Schedule schedule(scheduled(1.0, 0.2, 0.1), 10);
  EXPECT_EQ(schedule.warmup_steps(), 2);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(1), 1.0);
  // Halfway down the cosine: s = 6, (6-2)/(10-2) = 1/2.
  EXPECT_NEAR(schedule.rate(5), 0.1 + 0.9 * 0.5, 1e-15);
  // A quarter: s = 4, cos(pi/4) = sqrt(1/2).
  EXPECT_NEAR(schedule.rate(3), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)), 1e-15);
  EXPECT_DOUBLE_EQ(schedule.rate(9), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(50), 0.1);
}

TEST(Schedule, RoundsTheWarmUpUpwards) {
  EXPECT_EQ(Schedule(scheduled(1, 0.03, 0.1), 40).warmup_steps(), 2);
  EXPECT_EQ(Schedule(scheduled(1, 0.03, 0.1), 1).warmup_steps(), 1);
  EXPECT_EQ(Schedule(scheduled(1, 0.0, 0.1), 40).warmup_steps(), 0);
}

TEST(Schedule, NeverRisesAfterTheWarmUp) {
  const Schedule schedule(scheduled(3e-6, 0.03, 0.1), 137);
  for (std::int64_t step = schedule.warmup_steps(); step < 140; ++step) {
    EXPECT_LE(schedule.rate(step), schedule.rate(step - 1));
    EXPECT_GE(schedule.rate(step), 3e-7 * (1 - 1e-12));
  }
}

TEST(Schedule, StaysConstantWithoutATotal) {
  const Schedule schedule(scheduled(2e-5, 0.03, 0.1), 0);
  EXPECT_EQ(schedule.rate(0), 2e-5);
  EXPECT_EQ(schedule.rate(1000), 2e-5);
}

TEST(Schedule, WarmUpOfTheWholeRunEndsAtThePeak) {
  const Schedule schedule(scheduled(1.0, 1.0, 0.1), 4);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 1.0);
}

}  // namespace troupe::learn
