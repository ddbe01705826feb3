// The critic's loss: values worked by hand, gradients against finite differences.
#include "runtime/learn/rl/value_loss.hpp"

#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/learn/loss_gradients.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {
namespace {

// 0.5 * w * sum max((V - G)^2, (V_old + clip(V - V_old, +-c) - G)^2), written out.
double by_hand(double clip, const ValueBatch& batch, const std::vector<double>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double moved = std::min(std::max(values[i] - batch.old[i], -clip), clip);
    const double plain = (values[i] - batch.returns[i]) * (values[i] - batch.returns[i]);
    const double error = batch.old[i] + moved - batch.returns[i];
    sum += clip > 0 ? std::max(plain, error * error) : plain;
  }
  return 0.5 * batch.weight * sum;
}

}  // namespace

TEST(ValueLoss, HandWorkedValues) {
  // Inside the clip; above it and past the return's side; above it but nearer than held; below.
  ValueBatch batch;
  batch.old = {0.0, 0.0, 0.0, 1.0};
  batch.returns = {1.0, 2.0, -1.0, 1.0};
  batch.weight = 0.25;
  const std::vector<double> values = {0.25, 1.5, 1.0, -0.5};
  //   (0.25-1)^2 = 0.5625, held the same                           -> 0.5625
  //   (1.5-2)^2 = 0.25,    held at 0.5: (0.5-2)^2 = 2.25           -> 2.25, clipped
  //   (1+1)^2 = 4,         held at 0.5: (0.5+1)^2 = 2.25           -> 4
  //   (-0.5-1)^2 = 2.25,   held at 0.5: (0.5-1)^2 = 0.25           -> 2.25
  const auto result = value_loss_and_gradient(0.5, batch, values);
  EXPECT_DOUBLE_EQ(result.loss, 0.5 * 0.25 * (0.5625 + 2.25 + 4 + 2.25));
  EXPECT_EQ(result.stats.tokens, 4);
  EXPECT_EQ(result.stats.clipped, 1);
  EXPECT_DOUBLE_EQ(result.values[0], 0.25 * (0.25 - 1));
  EXPECT_DOUBLE_EQ(result.values[1], 0.0);  // held: nothing pulls it further
  EXPECT_DOUBLE_EQ(result.values[2], 0.25 * 2.0);
  EXPECT_DOUBLE_EQ(result.values[3], 0.25 * -1.5);
}

TEST(ValueLoss, WithoutClipItIsHalfTheMeanSquare) {
  ValueBatch batch{{0, 0}, {1, 5}, 0.5};
  const auto result = value_loss_and_gradient(0, batch, std::vector<double>{3.0, 1.0});
  EXPECT_DOUBLE_EQ(result.loss, 0.5 * 0.5 * (4 + 16));
  EXPECT_EQ(result.stats.clipped, 0);
}

TEST(ValueLoss, GradientIsThatOfFiniteDifferences) {
  core::Rng rng(5);
  ValueBatch batch;
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) {
    batch.old.push_back(rng.next_normal());
    batch.returns.push_back(rng.next_normal());
    values.push_back(rng.next_normal());
  }
  batch.weight = 1.0 / 40;
  for (const double clip : {0.0, 0.2, 0.5}) {
    const auto result = value_loss_and_gradient(clip, batch, values);
    EXPECT_NEAR(result.loss, by_hand(clip, batch, values), 1e-12);
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto up = values, down = values;
      up[i] += 1e-6;
      down[i] -= 1e-6;
      const double slope = (by_hand(clip, batch, up) - by_hand(clip, batch, down)) / 2e-6;
      EXPECT_NEAR(result.values[i], slope, 1e-8) << i << " at clip " << clip;
    }
  }
}

TEST(ExplainedVariance, OneForThePerfectCriticNothingForTheMean) {
  const std::vector<double> returns = {1, 2, 3, 6};
  EXPECT_DOUBLE_EQ(explained_variance(returns, returns), 1);
  EXPECT_DOUBLE_EQ(explained_variance(std::vector<double>(4, 7.0), returns), 0);
  // G - V = 1, 1, 1, 3: variance 0.75 of 3.5.
  EXPECT_DOUBLE_EQ(explained_variance(std::vector<double>{0, 1, 2, 3}, returns), 1 - 0.75 / 3.5);
  EXPECT_TRUE(std::isnan(explained_variance(returns, std::vector<double>(4, 2.0))));
}

}  // namespace troupe::learn
