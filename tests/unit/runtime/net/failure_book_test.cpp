// The window of failures, in virtual time.
#include "runtime/net/failure_book.hpp"

#include "runtime/core/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::net {
namespace {

using std::chrono::seconds;
const core::TimePoint kStart{seconds(1000)};

TEST(FailureBook, BlocksFromTheFifthFailureOfAMinute) {
  FailureBook book;
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(book.failed("a", kStart + seconds(i)));
  EXPECT_FALSE(book.blocked("a", kStart + seconds(4)));
  EXPECT_TRUE(book.failed("a", kStart + seconds(4)));
  EXPECT_TRUE(book.blocked("a", kStart + seconds(5)));
  EXPECT_FALSE(book.blocked("b", kStart + seconds(5)));
}

TEST(FailureBook, OpensWhenTheOldestIsAMinuteOld) {
  FailureBook book;
  for (int i = 0; i < 5; ++i)
    book.failed("a", kStart + seconds(i));
  EXPECT_TRUE(book.blocked("a", kStart + seconds(59)));
  EXPECT_FALSE(book.blocked("a", kStart + seconds(60)));
  EXPECT_TRUE(book.failed("a", kStart + seconds(60)));  // four of them are younger
}

TEST(FailureBook, SlowFailuresNeverBlock) {
  FailureBook book;
  for (int i = 0; i < 50; ++i)
    EXPECT_FALSE(book.failed("a", kStart + seconds(20 * i)));
}

TEST(FailureBook, RemembersABoundedNumberAndForgetsTheStalest) {
  FailureBook book;
  for (int i = 0; i < 5; ++i)
    book.failed("early", kStart);
  for (int i = 0; i < 5; ++i)
    book.failed("late", kStart + seconds(2));
  for (std::uint64_t i = 0; i + 1 < core::limits::kDoorAddresses_max; ++i) {
    book.failed("x" + std::to_string(i), kStart + seconds(3));
  }
  EXPECT_EQ(book.addresses(), core::limits::kDoorAddresses_max);
  EXPECT_FALSE(book.blocked("early", kStart + seconds(4)));
  EXPECT_TRUE(book.blocked("late", kStart + seconds(4)));
}

}  // namespace
}  // namespace troupe::net
