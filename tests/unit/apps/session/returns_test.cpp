// Where a run goes back to each time that it diverges, and when it ends.
#include "apps/session/returns.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

using Steps = std::vector<std::uint64_t>;

TEST(Returns, GoOneCheckpointFurtherEachTime) {
  Returns returns("update");
  const Steps kept = {2, 4, 6, 8, 10};
  EXPECT_EQ(returns.next(9, kept, std::nullopt)->step, 8u);
  EXPECT_EQ(returns.next(9, kept, std::nullopt)->step, 6u);
  // A checkpoint that was made after the return is not gone back to.
  const auto third = returns.next(9, {2, 4, 6, 8}, std::nullopt);
  EXPECT_EQ(third->step, 4u);
  EXPECT_EQ(third->nth, 3u);
  const auto ended = returns.next(9, {2, 4}, std::nullopt);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, core::ErrorCode::kNumeric);
  EXPECT_EQ(ended.error().what(),
            "the run went back to step_000008, step_000006 and step_000004, with other data each "
            "time, and did not get past update 10; so many returns are the most: 3");
  EXPECT_NE(ended.error().advice().find("--ckpt.max_num"), std::string::npos);
}

TEST(Returns, CountAnewOnceTheRunGotPast) {
  Returns returns("update");
  for (std::uint64_t good = 3; good < 12; ++good) {
    const auto place = returns.next(good, {good - 1, good}, std::nullopt);
    ASSERT_TRUE(place) << good;
    EXPECT_EQ(place->step, good);
    EXPECT_EQ(place->nth, 1u);
  }
  EXPECT_EQ(returns.next(11, {10, 11}, std::nullopt)->step, 10u) << "it did not get past update 12";
}

TEST(Returns, EndWhereNoEarlierCheckpointIsKept) {
  Returns returns("step");
  EXPECT_EQ(returns.next(5, {5}, std::nullopt)->step, 5u);
  const auto ended = returns.next(4, {5}, std::nullopt);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().what(),
            "the run went back to step_000005, with other data each time, and did not get past "
            "step 6; no earlier checkpoint is kept");
}

TEST(Returns, GoToTheStartOnlyWhereNoCheckpointWasMade) {
  Returns first("update"), branch("update");
  EXPECT_EQ(branch.next(12, {}, 10)->step, 10u);
  const auto place = first.next(1, {}, 0);
  EXPECT_EQ(place->step, 0u);
  EXPECT_TRUE(place->is_start);
  const auto ended = first.next(1, {}, 0);
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().message.find("went back to what it began with"), std::string::npos);
  Returns later("update");
  EXPECT_FALSE(later.next(7, {}, std::nullopt)) << "all that was learned would be lost";
  Returns given("update");
  EXPECT_FALSE(given.next(std::nullopt, {}, 0)) << "the model itself is at fault";
}

TEST(Returns, PassOverCheckpointsOfWeightsThatAreNoBetter) {
  Returns returns("update");
  EXPECT_EQ(returns.next(4, {3, 4, 5, 6}, std::nullopt)->step, 4u);
}

}  // namespace
}  // namespace troupe::session
