// Random waits before retries.
#include "runtime/core/jitter.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(Jitter, IsBetweenHalfAndAllAndSpreadOut) {
  Jitter jitter(7);
  int early = 0;
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = jitter.of(Duration(1000));
    ASSERT_GE(wait, Duration(500));
    ASSERT_LE(wait, Duration(1000));
    early += wait < Duration(750) ? 1 : 0;
  }
  EXPECT_GT(early, 400);
  EXPECT_LT(early, 600);
}

TEST(Jitter, ASeedGivesItsWaits) {
  Jitter one(3), same(3), other(4);
  const Duration first = one.of(std::chrono::seconds(1));
  EXPECT_EQ(first, same.of(std::chrono::seconds(1)));
  EXPECT_NE(first, other.of(std::chrono::seconds(1)));
  EXPECT_EQ(one.of(Duration(0)), Duration(0));
}

}  // namespace
}  // namespace troupe::core
