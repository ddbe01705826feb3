#include "runtime/cluster/part_intake.hpp"

#include "runtime/cluster/limits.hpp"
#include "runtime/wire/limits.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::cluster {
namespace {

using core::ErrorCode;
using namespace testing;

const core::TimePoint kStart{};

class PartIntakeTest : public ::testing::Test {
 protected:
  core::Result<void> put(std::uint32_t index, core::TimePoint now = kStart) {
    return intake_.put("generator/0", 7, part(index), now);
  }
  wire::Part part(std::uint32_t index) const {
    return {1, index, message_.size_bytes(), wire::part_of(message_.bytes(), index)};
  }
  core::Result<std::optional<wire::Frame>> take() { return intake_.take("generator/0", 7, 1); }

  const wire::Frame message_ = text_frame({}, std::string(3u << 20, 'x'));
  const std::uint32_t count_ = wire::part_count(message_.size_bytes());
  PartIntake intake_;
};

TEST_F(PartIntakeTest, PartsComeInAnyOrderAndAsOftenAsTheyLike) {
  ASSERT_EQ(count_, 4u);
  for (const std::uint32_t index : {2u, 0u, 2u, 3u, 0u, 1u})
    ASSERT_TRUE(put(index)) << index;
  EXPECT_EQ(intake_.bytes(), message_.size_bytes());
  const auto message = take();
  ASSERT_TRUE(message && *message);
  EXPECT_EQ(text_of(**message), text_of(message_));
  EXPECT_EQ(intake_.bytes(), message_.size_bytes());
  intake_.release(message_.size_bytes());
  // One that was doubled on its way begins nothing new.
  EXPECT_TRUE(put(1));
  EXPECT_EQ(intake_.open(), 0u);
  EXPECT_EQ(intake_.bytes(), 0u);
  EXPECT_EQ(*take(), std::nullopt);
}

TEST_F(PartIntakeTest, AMessageThatLacksAPartIsForgottenAndItsSenderTold) {
  for (const std::uint32_t index : {0u, 1u, 3u})
    ASSERT_TRUE(put(index));
  EXPECT_EQ(take().error().code, ErrorCode::kDeadline);
  EXPECT_EQ(intake_.bytes(), 0u);
}

TEST_F(PartIntakeTest, StrangePartsAreRefused) {
  auto refused = [this](wire::Part strange) {
    const auto taken = intake_.put("generator/0", 7, strange, kStart);
    return !taken && taken.error().code == ErrorCode::kData;
  };
  wire::Part strange = part(0);
  strange.bytes = wire::limits::kMessage_bytes_max + 8;
  EXPECT_TRUE(refused(strange));
  EXPECT_EQ(intake_.bytes(), 0u);
  strange.bytes = 0;
  EXPECT_TRUE(refused(strange));
  ASSERT_TRUE(put(0));
  strange = part(1);
  strange.index = count_;
  EXPECT_TRUE(refused(strange));
  strange = part(1);
  strange.data = strange.data.first(8);
  EXPECT_TRUE(refused(strange));
  strange = part(1);
  strange.bytes += 8;
  EXPECT_TRUE(refused(strange));
  for (std::uint32_t index = 1; index < count_; ++index)
    ASSERT_TRUE(put(index));
  EXPECT_TRUE(take().has_value());
}

TEST_F(PartIntakeTest, SilenceAndALostSenderLeaveNothingBehind) {
  ASSERT_TRUE(put(0, kStart));
  ASSERT_TRUE(put(1, kStart + limits::kPartsSilence_max));
  intake_.forget_silent(kStart + limits::kPartsSilence_max);
  EXPECT_EQ(intake_.open(), 1u);
  intake_.forget_silent(kStart + 2 * limits::kPartsSilence_max);
  EXPECT_EQ(intake_.bytes(), 0u);
  ASSERT_TRUE(put(0));
  intake_.forget("generator/1");
  EXPECT_EQ(intake_.open(), 1u);
  intake_.forget("generator/0");
  EXPECT_EQ(intake_.open(), 0u);
  EXPECT_EQ(intake_.bytes(), 0u);
}

TEST_F(PartIntakeTest, WhatDoesNotFitBesideTheOthersHasToWait) {
  const std::uint64_t most = wire::limits::kMessage_bytes_max;
  const std::vector<std::byte> some(most);
  const auto begin = [&](std::uint64_t number) {
    return intake_.put("generator/0", 7, {number, 0, most, wire::part_of(some, 0)}, kStart);
  };
  std::uint64_t number = 0;
  for (; intake_.bytes() + most <= limits::kMessages_bytes_max; ++number)
    ASSERT_TRUE(begin(number));
  EXPECT_EQ(begin(number).error().code, ErrorCode::kOverloaded);
  intake_.forget("generator/0");
  EXPECT_TRUE(begin(number));
}

}  // namespace
}  // namespace troupe::cluster
