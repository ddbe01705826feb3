// The words about what a plain Python reward costs an update.
#include "apps/session/reward_arithmetic.hpp"

#include <gtest/gtest.h>

namespace troupe::app {

TEST(RewardArithmetic, GroupsTimesSecondsOverWorkers) {
  EXPECT_EQ(call_arithmetic({1, 0.5, 4, 0}, 64),
            "64 groups x 0.5 s a call / 1 worker = 32 s an update");
  EXPECT_EQ(call_arithmetic({3, 0.5, 4, 0}, 64),
            "64 groups x 0.5 s a call / 3 workers = 11 s an update")
      << "22 rounds";
}

TEST(RewardArithmetic, NothingIsSaidOfOthersAndBeforeCallsWereTimed) {
  EXPECT_EQ(call_arithmetic({2, 0.5, 3, 0}, 64), "") << "three calls";
  EXPECT_EQ(call_arithmetic({2, 0.5, 40, 1}, 64), "") << "an async function";
  EXPECT_EQ(call_arithmetic({}, 64), "") << "no Python reward";
}

}  // namespace troupe::app
