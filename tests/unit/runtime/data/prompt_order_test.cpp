// The order of rows, and going on in the middle of it.
#include "runtime/data/prompt_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace troupe::data;

std::vector<std::uint64_t> take(PromptOrder& order, std::uint64_t from, std::uint64_t count) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < count; ++i)
    out.push_back(order.row_at(from + i));
  return out;
}

TEST(PromptOrder, EachEpochUsesEveryRowOnce) {
  PromptOrder order(17, 3);
  auto first = take(order, 0, 17), second = take(order, 17, 17);
  EXPECT_NE(first, second) << "every pass has an order of its own";
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  for (std::uint64_t i = 0; i < 17; ++i) {
    EXPECT_EQ(first[i], i);
    EXPECT_EQ(second[i], i);
  }
}

TEST(PromptOrder, ResumesAtAnyPlace) {
  PromptOrder whole(10, 5);
  const auto expected = take(whole, 0, 35);
  for (std::uint64_t place = 0; place < 35; ++place) {
    PromptOrder resumed(10, 5);
    EXPECT_EQ(resumed.row_at(place), expected[place]);
  }
}

TEST(PromptOrder, GoesBackToo) {
  PromptOrder order(10, 5);
  const auto expected = take(order, 0, 30);
  EXPECT_EQ(take(order, 0, 30), expected);
}

TEST(PromptOrder, SeedDecides) {
  PromptOrder a(50, 1), b(50, 1), c(50, 2);
  EXPECT_EQ(take(a, 0, 50), take(b, 0, 50));
  EXPECT_NE(take(a, 0, 50), take(c, 0, 50));
}

TEST(PromptOrder, RunsStayTogether) {
  // Rows 0 and 1, 2, 3 to 5, 6.
  PromptOrder order(7, 3, {0, 2, 3, 6});
  const auto first = take(order, 0, 7), second = take(order, 7, 7);
  EXPECT_NE(first, second);
  for (auto pass : {first, second}) {
    const auto place = [&](std::uint64_t row) { return std::ranges::find(pass, row); };
    EXPECT_EQ(place(1), place(0) + 1);
    EXPECT_EQ(place(4), place(3) + 1);
    EXPECT_EQ(place(5), place(3) + 2);
    std::ranges::sort(pass);
    EXPECT_EQ(pass, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  }
  PromptOrder resumed(7, 3, {0, 2, 3, 6}), single(7, 3, {0, 1, 2, 3, 4, 5, 6}), plain(7, 3);
  EXPECT_EQ(resumed.row_at(9), second[2]);
  EXPECT_EQ(take(single, 0, 14), take(plain, 0, 14));
}

TEST(PromptOrder, OneRowIsAlwaysItself) {
  PromptOrder order(1, 9);
  EXPECT_EQ(take(order, 0, 3), (std::vector<std::uint64_t>{0, 0, 0}));
}

}  // namespace
