// Hand-worked recursions over tokens. Conventions: docs/algorithms.md, step 6.
#include "runtime/learn/advantage/token_returns.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {
namespace {

using Values = std::vector<double>;

void expect_near(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-14) << "token " << i;
}

}  // namespace

TEST(Gae, WorkedExampleOfThree) {
  // gamma 0.5, lambda 0.5; rewards 0 0 4, values 1 2 3. delta: 0 + 1 - 1 = 0; 0 + 1.5 - 2 = -0.5;
  // 4 - 3 = 1. A_2 = 1; A_1 = -0.5 + 0.25 = -0.25; A_0 = 0 - 0.0625.
  const auto got = gae(Values{0, 0, 4}, Values{1, 2, 3}, 0.5, 0.5);
  expect_near(got.advantages, {-0.0625, -0.25, 1});
  expect_near(got.targets, {0.9375, 1.75, 4});
}

TEST(Gae, WithoutDiscountIsTheRewardMinusTheValue) {
  const auto got = gae(Values{0, 0, 4}, Values{1, 2, 3}, 1, 1);
  expect_near(got.advantages, {3, 2, 1});
  expect_near(got.targets, {4, 4, 4});
}

TEST(Vtrace, WorkedExampleOfTwo) {
  // gamma 1, lambda 0.5, bounds 1; w = 2 and 0.5; rewards 0 4, values 1 2.
  // t=1: step 4 - 2 = 2; delta 0.5 * 2 = 1; v_1 = 3; A_1 = 4 - 2 = 2.
  // t=0: step 0 + 2 - 1 = 1; delta min(1, 2) = 1; v_0 = 1 + 1 + 0.5 * min(1, 2) * (3 - 2) = 2.5;
  //      A_0 = 0 + (0.5 * 3 + 0.5 * 2) - 1 = 1.5.
  const auto got = vtrace(Values{0, 4}, Values{1, 2}, Values{std::log(2.0), std::log(0.5)},
                          {.gamma = 1, .lambda = 0.5, .rho_max = 1, .c_max = 1});
  expect_near(got.advantages, {1.5, 2});
  expect_near(got.targets, {2.5, 3});
}

TEST(Vtrace, BoundsAreApart) {
  // w = 3 on both: rho_max 2, c_max 0.5. t=1: delta 2 * 2 = 4, v_1 = 6.
  // t=0: step 1, delta 2, v_0 = 1 + 2 + 0.5 * (6 - 2) = 5.
  const Values w = {std::log(3.0), std::log(3.0)};
  const auto got =
      vtrace(Values{0, 4}, Values{1, 2}, w, {.gamma = 1, .lambda = 1, .rho_max = 2, .c_max = 0.5});
  expect_near(got.targets, {5, 6});
  expect_near(got.advantages, {5, 2});
}

TEST(Vtrace, OnPolicyHasTheBitsOfGae) {
  core::Rng rng(3);
  Values rewards, values;
  for (int i = 0; i < 60; ++i) {
    rewards.push_back(rng.next_normal());
    values.push_back(rng.next_normal());
  }
  const auto a = gae(rewards, values, 0.97, 0.9);
  const auto b = vtrace(rewards, values, Values(60, 0.0), {.gamma = 0.97, .lambda = 0.9});
  EXPECT_EQ(a.advantages, b.advantages);
  EXPECT_EQ(a.targets, b.targets);
}

TEST(RewardsToGo, DiscountsByTokens) {
  expect_near(rewards_to_go(Values{1, 0, 4}, 0.5), {2, 2, 4});
}

}  // namespace troupe::learn
