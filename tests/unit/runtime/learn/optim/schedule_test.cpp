// Hand-worked learning rates.
#include "runtime/learn/optim/schedule.hpp"

#include "runtime/learn/settings.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::learn {
namespace {

OptimSettings scheduled(double lr, double warmup, double minimum) {
  OptimSettings settings;
  settings.adam.lr = lr;
  settings.lr_warmup_ratio = warmup;
  settings.min_lr_ratio = minimum;
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

// 2 of 10 steps of warm-up; then rates by hand for s = 3, 6, 9 and 10.
TEST(Schedule, HasOtherWaysDown) {
  const auto rates = [](const char* name, std::int64_t cycles = 1) {
    OptimSettings settings = scheduled(1.0, 0.2, 0.1);
    settings.lr_scheduler = Chosen<Schedule>(name);
    settings.lr_decay_ratio = 0.4;
    settings.lr_cycles = cycles;
    std::vector<double> found;
    for (const std::int64_t step : {0, 2, 5, 8, 9})
      found.push_back(learning_rate(settings, 10, step));
    return found;
  };
  const auto expect_near = [](const std::vector<double>& found,
                              const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
  };
  expect_near(rates("linear"), {0.5, 0.1 + 0.9 * 7 / 8, 0.1 + 0.9 * 4 / 8, 0.1 + 0.9 / 8, 0.1});
  expect_near(rates("constant"), {0.5, 1, 1, 1, 1});
  // The last 4 steps: s = 9 is 3 of 4 down, (1 + cos(3 pi / 4)) / 2.
  const double three_quarters = 0.5 * (1 - std::sqrt(0.5));
  expect_near(rates("wsd"), {0.5, 1, 1, 0.1 + 0.9 * three_quarters, 0.1});
  // Two half cosines of 4 steps: s = 3 is 1 of 4 down, s = 6 begins anew, s = 9 is 3 of 4 down.
  const double one_quarter = 0.5 * (1 + std::sqrt(0.5));
  expect_near(rates("restarts", 2),
              {0.5, 0.1 + 0.9 * one_quarter, 1, 0.1 + 0.9 * three_quarters, 0.1});
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
