#include "runtime/experience/group.hpp"

#include <gtest/gtest.h>

namespace troupe::experience {
namespace {

TEST(Trajectory, WhatIsDeliveredHasOneRecordPerToken) {
  Trajectory sample;
  EXPECT_EQ(check_delivered(sample).error().code, core::ErrorCode::kData);
  sample.tokens = {4, 5};
  sample.behaviour = {-1.0f, -2.0f};
  sample.versions = {3, 3};
  EXPECT_TRUE(check_delivered(sample));
  sample.versions.add(3);
  EXPECT_EQ(check_delivered(sample).error().message,
            "a sample of 2 tokens with 2 log-probs and 3 versions");
}

TEST(Trajectory, OnlyLengthTruncates) {
  Trajectory sample;
  for (const auto reason : {FinishReason::kEos, FinishReason::kStop, FinishReason::kAborted}) {
    sample.finish = reason;
    EXPECT_FALSE(sample.truncated()) << finish_name(reason);
  }
  sample.finish = FinishReason::kLength;
  EXPECT_TRUE(sample.truncated());
  EXPECT_EQ(finish_name(sample.finish), "length");
}

}  // namespace
}  // namespace troupe::experience
