// Ranges of items: their size, and the items within the items.
#include "runtime/core/range.hpp"

#include "runtime/core/team.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(Range, SizeAndEmptiness) {
  EXPECT_EQ((Range{3, 7}).size(), 4);
  EXPECT_FALSE((Range{3, 7}).empty());
  EXPECT_TRUE((Range{3, 3}).empty());
  EXPECT_TRUE((Range{4, 3}).empty());
}

TEST(Range, TimesCountsWhatTheItemsConsistOf) {
  const Range elements = Range{2, 5}.times(10);
  EXPECT_EQ(elements.begin, 20);
  EXPECT_EQ(elements.end, 50);
}

TEST(Range, SharesOfATeamAreAdjacentAndWhole) {
  const Team first{.rank = 0, .size = 2}, second{.rank = 1, .size = 2};
  EXPECT_EQ(first.share(40, 16).begin, 0);
  EXPECT_EQ(first.share(40, 16).end, 16);
  EXPECT_EQ(second.share(40, 16).begin, 16);
  EXPECT_EQ(second.share(40, 16).end, 40);
}

}  // namespace
}  // namespace troupe::core
