// Hand-worked shaping of scores. Conventions: docs/algorithms.md, steps 1 and 2.
#include "runtime/learn/advantage/reward_shaping.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::learn {

TEST(RunningMoments, AreThoseOfAllNumbersSoFar) {
  RunningMoments moments;
  moments.add(5);
  EXPECT_EQ(moments.normalised(5), 5.0);  // one number has no deviation
  for (const double value : {1.0, 3.0, 7.0})
    moments.add(value);
  // Mean 4, squares 1 + 9 + 1 + 9 = 20, population deviation sqrt(5).
  EXPECT_NEAR(moments.mean, 4, 1e-15);
  EXPECT_NEAR(moments.deviation(), std::sqrt(5.0), 1e-15);
  EXPECT_NEAR(moments.normalised(9), std::sqrt(5.0), 1e-14);
}

TEST(RunningMoments, EqualNumbersGiveZero) {
  RunningMoments moments;
  for (int i = 0; i < 3; ++i)
    moments.add(0.1);
  EXPECT_EQ(moments.normalised(0.1), 0.0);
}

TEST(OverlongPenalty, GrowsOverTheBuffer) {
  RewardShaping shaping;
  shaping.response_tokens_max = 100;
  EXPECT_EQ(overlong_penalty(shaping, 100), 0.0);
  shaping.overlong_buffer_len = 20;
  shaping.overlong_penalty_factor = 0.5;
  EXPECT_EQ(overlong_penalty(shaping, 80), 0.0);
  EXPECT_DOUBLE_EQ(overlong_penalty(shaping, 81), 0.5 * 1 / 20);
  EXPECT_DOUBLE_EQ(overlong_penalty(shaping, 90), 0.25);
  EXPECT_DOUBLE_EQ(overlong_penalty(shaping, 100), 0.5);
  EXPECT_DOUBLE_EQ(overlong_penalty(shaping, 140), 0.5);  // never more
}

TEST(CutScore, TakesOffAShareOfItsSize) {
  RewardShaping shaping;
  EXPECT_EQ(cut_score(shaping, 2), 2.0);
  shaping.stop_properly_penalty_coef = 0.25;
  EXPECT_DOUBLE_EQ(cut_score(shaping, 2), 0.5);
  // A bad score gets worse; the peer's c R would make it better.
  EXPECT_DOUBLE_EQ(cut_score(shaping, -2), -3.5);
  shaping.stop_properly_penalty_coef = -1;
  EXPECT_EQ(cut_score(shaping, 2), -1.0);
}

TEST(ShapedScore, CutsOnlyTruncatedSamples) {
  RewardShaping shaping;
  shaping.overlong_buffer_len = 2;
  shaping.response_tokens_max = 4;
  shaping.stop_properly_penalty_coef = 0.5;
  experience::Trajectory sample;
  sample.tokens = {1, 2, 3};
  EXPECT_DOUBLE_EQ(shaped_score(shaping, sample, 2), 1.5);
  sample.finish = experience::FinishReason::kLength;
  EXPECT_DOUBLE_EQ(shaped_score(shaping, sample, 2), 0.75);
}

}  // namespace troupe::learn
