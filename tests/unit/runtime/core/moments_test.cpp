// Mean and deviation of numbers that overflow or cancel, against values worked out by hand.
#include "runtime/core/moments.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::core {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

TEST(Moments, OfPlainNumbersAreThePlainSums) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
  const Moments of = moments_of(values);
  EXPECT_EQ(of.mean, 5);
  EXPECT_EQ(of.deviation, 2);
  EXPECT_EQ(of.low, 2);
  EXPECT_EQ(of.high, 9);
  EXPECT_EQ(stable_mean(std::vector<double>{0.1, 0.2, 0.3}), (0.1 + 0.2 + 0.3) / 3);
}

TEST(Moments, NeitherOverflowNorCancel) {
  EXPECT_EQ(stable_mean(std::vector<double>{kMost, kMost}), kMost);
  EXPECT_EQ(stable_mean(std::vector<double>{kMost, kMost, -kMost, -kMost}), 0);
  EXPECT_EQ(moments_of(std::vector<double>{kMost, -kMost}).deviation, kMost);
  EXPECT_EQ(moments_of(std::vector<double>{1e200, -1e200}).deviation, 1e200);
  EXPECT_EQ(moments_of(std::vector<double>{1e9, 1e9 + 1}).deviation, 0.5);
  EXPECT_EQ(moments_of(std::vector<double>{0.1, 0.1, 0.1}).deviation, 0);
}

TEST(Moments, OfOneNumberAndOfNone) {
  EXPECT_EQ(moments_of(std::vector<double>{3}).deviation, 0);
  EXPECT_EQ(moments_of({}).mean, 0);
}

}  // namespace
}  // namespace troupe::core
