// Windows of a minute, and how long a proof is remembered, in virtual time.
#include "runtime/net/gateway_records.hpp"

#include "runtime/net/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::net {
namespace {

using std::chrono::seconds;
const core::TimePoint kStart{seconds(1000)};

TEST(MinuteBook, IsFullFromTheFifthEventOfAMinute) {
  MinuteBook book(5);
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(book.add("a", kStart + seconds(i)));
  EXPECT_FALSE(book.full("a", kStart + seconds(4)));
  EXPECT_TRUE(book.add("a", kStart + seconds(4)));
  EXPECT_TRUE(book.full("a", kStart + seconds(5)));
  EXPECT_FALSE(book.full("b", kStart + seconds(5)));
}

TEST(MinuteBook, OpensWhenTheOldestIsAMinuteOld) {
  MinuteBook book(5);
  for (int i = 0; i < 5; ++i)
    book.add("a", kStart + seconds(i));
  EXPECT_TRUE(book.full("a", kStart + seconds(59)));
  EXPECT_FALSE(book.full("a", kStart + seconds(60)));
  EXPECT_TRUE(book.add("a", kStart + seconds(60)));  // four of them are younger
}

TEST(MinuteBook, SlowEventsNeverFillIt) {
  MinuteBook book(5);
  for (int i = 0; i < 50; ++i)
    EXPECT_FALSE(book.add("a", kStart + seconds(20 * i)));
}

TEST(MinuteBook, RemembersABoundedNumberAndForgetsTheStalest) {
  MinuteBook book(5);
  for (int i = 0; i < 5; ++i)
    book.add("early", kStart);
  for (int i = 0; i < 5; ++i)
    book.add("late", kStart + seconds(2));
  for (std::uint64_t i = 0; i + 1 < limits::kGatewayAddresses_max; ++i) {
    book.add("x" + std::to_string(i), kStart + seconds(3));
  }
  EXPECT_EQ(book.keys(), limits::kGatewayAddresses_max);
  EXPECT_FALSE(book.full("early", kStart + seconds(4)));
  EXPECT_TRUE(book.full("late", kStart + seconds(4)));
}

TEST(ProvenBook, KnowsWhoIsCarriedAndWhoWasWithinTheHour) {
  ProvenBook book;
  EXPECT_FALSE(book.knows("a", kStart));
  book.enters("a", kStart);
  book.enters("a", kStart + seconds(10));
  book.leaves("a", kStart + seconds(20));
  EXPECT_TRUE(book.knows("a", kStart + std::chrono::hours(9))) << "one is still carried";
  EXPECT_FALSE(book.knows("b", kStart));
  const auto end = kStart + std::chrono::hours(9);
  book.leaves("a", end);
  EXPECT_TRUE(book.knows("a", end + seconds(3599)));
  EXPECT_FALSE(book.knows("a", end + seconds(3600)));
}

TEST(ProvenBook, RemembersABoundedNumberAndAllThatAreCarried) {
  ProvenBook book;
  book.enters("carried", kStart);
  for (std::uint64_t i = 0; i < limits::kGatewayAddresses_max; ++i) {
    const std::string name = "x" + std::to_string(i);
    book.enters(name, kStart + seconds(1));
    book.leaves(name, kStart + seconds(2 + static_cast<std::int64_t>(i)));
  }
  EXPECT_TRUE(book.knows("carried", kStart + seconds(2000)));
  EXPECT_FALSE(book.knows("x0", kStart + seconds(2000)));
  EXPECT_TRUE(book.knows("x1", kStart + seconds(2000)));
}

}  // namespace
}  // namespace troupe::net
