// The order of a buffer that shuffles: what a place may take, each row once in a pass, the same
// from any place.
#include "runtime/data/buffer_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe::data {
namespace {

using Rows = std::vector<std::uint64_t>;

Rows take(BufferOrder& order, std::uint64_t from, std::uint64_t count) {
  Rows rows;
  for (std::uint64_t i = from; i < from + count; ++i)
    rows.push_back(order.row_at(i));
  return rows;
}

// A buffer by hand: every place takes a row that is in it, and the next row comes in.
TEST(BufferOrder, EachPlaceTakesARowOfTheBuffer) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    BufferOrder order(9, 3, seed);
    for (std::uint64_t pass = 0; pass < 3; ++pass) {
      Rows buffer = {0, 1, 2};
      std::uint64_t next = 3;
      for (std::uint64_t place = 0; place < 9; ++place) {
        const std::uint64_t row = order.row_at(pass * 9 + place);
        const auto found = std::ranges::find(buffer, row);
        ASSERT_NE(found, buffer.end()) << "seed " << seed << ", place " << place;
        buffer.erase(found);
        if (next < 9) buffer.push_back(next++);
        std::ranges::sort(buffer);
        for (std::uint64_t one = 0; one < 9; ++one)
          EXPECT_EQ(order.holds(one), std::ranges::count(buffer, one) == 1) << place << " " << one;
        EXPECT_EQ(order.first_left(), buffer.empty() ? 9 : buffer.front());
        EXPECT_EQ(order.entered(), next);
      }
      EXPECT_TRUE(buffer.empty());
    }
  }
}

TEST(BufferOrder, OneRowKeepsTheOrderOfTheFilesAndAllRowsAreShuffledWhole) {
  BufferOrder one(5, 1, 7);
  EXPECT_EQ(take(one, 0, 7), Rows({0, 1, 2, 3, 4, 0, 1}));
  BufferOrder all(50, 1000, 7);
  Rows pass = take(all, 0, 50);
  EXPECT_FALSE(std::ranges::is_sorted(pass));
  std::ranges::sort(pass);
  Rows expected(50);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(pass, expected);
}

// The first place takes each row of a buffer of four equally often: 4,000 seeds, some 1,000 each.
TEST(BufferOrder, EveryRowOfTheBufferIsAsLikely) {
  std::vector<int> taken(4);
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    ++taken[BufferOrder(100, 4, seed).row_at(0)];
  for (const int count : taken)
    EXPECT_NEAR(count, 1000, 150);
}

TEST(BufferOrder, AnyPlaceIsAFunctionOfItsIndex) {
  BufferOrder whole(37, 5, 3);
  const Rows rows = take(whole, 0, 100);
  EXPECT_NE(Rows(rows.begin(), rows.begin() + 37), Rows(rows.begin() + 37, rows.begin() + 74))
      << "each pass has its own order";
  for (std::uint64_t start = 0; start < 100; ++start) {
    BufferOrder resumed(37, 5, 3);
    ASSERT_EQ(take(resumed, start, 100 - start),
              Rows(rows.begin() + static_cast<long>(start), rows.end()));
  }
  for (std::uint64_t i = 100; i-- > 0;)
    ASSERT_EQ(whole.row_at(i), rows[i]) << "backwards, " << i;
  BufferOrder other(37, 5, 4);
  EXPECT_NE(take(other, 0, 100), rows);
}

// Runs that go on rely on it. The rows are those of a program in Python that has splitmix64,
// Philox4x32-10 and the loop over a buffer of its own.
TEST(BufferOrder, TheOrderIsOneForAllVersionsOfTheProgram) {
  BufferOrder order(10, 4, 42);
  EXPECT_EQ(take(order, 0, 20), Rows({0, 4, 5, 6, 7, 2, 9, 8, 3, 1, 3, 4, 0, 5, 7, 6, 9, 2, 8, 1}));
}

}  // namespace
}  // namespace troupe::data
