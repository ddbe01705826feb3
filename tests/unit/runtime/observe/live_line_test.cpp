// Which parts of the live line stay when a terminal is narrow.
#include "runtime/observe/live_line.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using troupe::observe::bar_text;
using troupe::observe::fitted_line;
using troupe::observe::LinePart;

const std::vector<LinePart> kParts = {{"step 2/4"},    {"[##..]", 3},
                                      {"reward 1", 2}, {"", 9},
                                      {"9 s left", 1}, {"waiting for scores", 4, 7, true}};

TEST(LiveLine, PartsGiveWayFromTheHighestRankOn) {
  // 8 + 2 + 6 + 2 + 8 + 2 + 8 = 36, and 20 for the last part.
  EXPECT_EQ(fitted_line(kParts, 56, false),
            "step 2/4  [##..]  reward 1  9 s left  waiting for scores");
  EXPECT_EQ(fitted_line(kParts, 55, false),
            "step 2/4  [##..]  reward 1  9 s left  waiting for score");
  EXPECT_EQ(fitted_line(kParts, 45, false), "step 2/4  [##..]  reward 1  9 s left  waiting");
  EXPECT_EQ(fitted_line(kParts, 44, false), "step 2/4  [##..]  reward 1  9 s left");
  EXPECT_EQ(fitted_line(kParts, 36, false), "step 2/4  [##..]  reward 1  9 s left");
  EXPECT_EQ(fitted_line(kParts, 35, false), "step 2/4  reward 1  9 s left");
  EXPECT_EQ(fitted_line(kParts, 27, false), "step 2/4  9 s left");
  EXPECT_EQ(fitted_line(kParts, 17, false), "step 2/4");
  EXPECT_EQ(fitted_line(kParts, 4, false), "step");
  EXPECT_EQ(fitted_line(kParts, 0, false), "");
}

TEST(LiveLine, ColourTakesNoColumn) {
  EXPECT_EQ(fitted_line(kParts, 56, true),
            "step 2/4  [##..]  reward 1  9 s left  \x1b[2mwaiting for scores\x1b[0m");
}

TEST(LiveLine, CharactersAreCountedAndNotBytes) {
  const std::vector<LinePart> parts = {{"\xc3\xa4\xc3\xb6\xc3\xbc\nx"}};
  EXPECT_EQ(fitted_line(parts, 5, false), "\xc3\xa4\xc3\xb6\xc3\xbc x");
  EXPECT_EQ(fitted_line(parts, 2, false), "\xc3\xa4\xc3\xb6");
}

TEST(LiveLine, ABarIsFullAtOne) {
  EXPECT_EQ(bar_text(0, 4), "[....]");
  EXPECT_EQ(bar_text(0.49, 4), "[#...]");
  EXPECT_EQ(bar_text(1, 4), "[####]");
  EXPECT_EQ(bar_text(7, 4), "[####]");
  EXPECT_EQ(bar_text(-1, 4), "[....]");
  EXPECT_EQ(bar_text(0.0 / 0.0, 4), "[....]");
}

}  // namespace
