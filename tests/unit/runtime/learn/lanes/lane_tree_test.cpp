// The order of joining: trees worked out by hand, absent lanes, and lanes that are cut into ranks.
#include "runtime/learn/lanes/lane_tree.hpp"

#include "tests/unit/runtime/learn/lanes/level_tree.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::learn {
namespace {

// Sums written out: lane 3 is "3", a join of x and y "(xy)".
struct Written {
  std::vector<std::string> sums;
  LaneFold fold;

  void take(LaneSpan lanes, bool present, const std::string& sum) {
    const int joins = fold.take({lanes, present});
    if (present) sums.push_back(sum);
    for (int i = 0; i < joins; ++i) {
      const std::string right = sums.back();
      sums.pop_back();
      sums.back() = "(" + sums.back() + right + ")";
    }
  }
};

// `lanes`: a letter a lane, '-' where it is absent.
std::string in_one(const std::string& lanes) {
  Written written{{}, LaneFold(std::ssize(lanes))};
  for (const char lane : lanes) {
    const std::int64_t at = written.fold.next();
    written.take({at, at + 1}, lane != '-', std::string(1, lane));
  }
  EXPECT_TRUE(written.fold.complete());
  EXPECT_LE(written.sums.size(), 1u);
  return written.sums.empty() ? "" : written.sums.front();
}

// The same with the lanes held by ranks: each joins what it can, in a fold of its own, and the
// owner joins what they have completed. Bit i of `cuts`: a rank ends behind lane i.
std::string in_ranks(const std::string& lanes, unsigned cuts) {
  const std::int64_t count = std::ssize(lanes);
  Written owner{{}, LaneFold(count)};
  for (std::int64_t begin = 0; begin < count;) {
    std::int64_t end = begin + 1;
    while (end < count && (cuts >> (end - 1) & 1) == 0)
      ++end;
    Written rank{{}, LaneFold(count, begin)};
    for (std::int64_t i = begin; i < end; ++i) {
      const char lane = lanes[static_cast<std::size_t>(i)];
      rank.take({i, i + 1}, lane != '-', std::string(1, lane));
    }
    auto sum = rank.sums.begin();
    for (const LaneFold::Subtree& subtree : rank.fold.waiting())
      owner.take(subtree.lanes, subtree.present, subtree.present ? *sum++ : "");
    EXPECT_EQ(sum, rank.sums.end());
    begin = end;
  }
  EXPECT_TRUE(owner.fold.complete());
  return owner.sums.empty() ? "" : owner.sums.front();
}

TEST(LaneTree, JoinsNeighboursLevelByLevel) {
  EXPECT_EQ(in_one("a"), "a");
  EXPECT_EQ(in_one("ab"), "(ab)");
  EXPECT_EQ(in_one("abc"), "((ab)c)");
  EXPECT_EQ(in_one("abcd"), "((ab)(cd))");
  EXPECT_EQ(in_one("abcde"), "(((ab)(cd))e)");
  EXPECT_EQ(in_one("abcdef"), "(((ab)(cd))(ef))");
  EXPECT_EQ(in_one("abcdefg"), "(((ab)(cd))((ef)g))");
  EXPECT_EQ(in_one("abcdefgh"), "(((ab)(cd))((ef)(gh)))");
  EXPECT_EQ(in_one("abcdefghi"), "((((ab)(cd))((ef)(gh)))i)");
}

TEST(LaneTree, AnAbsentLanePassesItsSiblingUp) {
  EXPECT_EQ(in_one("-b"), "b");
  EXPECT_EQ(in_one("a-c"), "(ac)");
  EXPECT_EQ(in_one("ab-d"), "((ab)d)");
  EXPECT_EQ(in_one("--cd"), "(cd)");
  EXPECT_EQ(in_one("a--d"), "(ad)");
  EXPECT_EQ(in_one("ab-defg-"), "(((ab)d)((ef)g))");
  EXPECT_EQ(in_one("a-------"), "a");
  EXPECT_EQ(in_one("a---e---i"), "((ae)i)");
  EXPECT_EQ(in_one("-----"), "");
  // Lanes that are absent at the end are as if there were fewer of them.
  EXPECT_EQ(in_one("abcde---"), in_one("abcde"));
}

TEST(LaneTree, ARankCompletesTheLargestSubtreesOfItsLanes) {
  const auto held = [](std::int64_t lanes, std::int64_t begin, std::int64_t end) {
    LaneFold fold(lanes, begin);
    for (std::int64_t i = begin; i < end; ++i)
      fold.take({{i, i + 1}, true});
    std::vector<LaneSpan> spans;
    for (const LaneFold::Subtree& subtree : fold.waiting())
      spans.push_back(subtree.lanes);
    return spans;
  };
  using Spans = std::vector<LaneSpan>;
  EXPECT_EQ(held(8, 0, 4), (Spans{{0, 4}}));
  EXPECT_EQ(held(8, 2, 6), (Spans{{2, 4}, {4, 6}}));
  EXPECT_EQ(held(8, 1, 8), (Spans{{1, 2}, {2, 4}, {4, 8}}));
  EXPECT_EQ(held(6, 0, 3), (Spans{{0, 2}, {2, 3}}));
  EXPECT_EQ(held(6, 3, 6), (Spans{{3, 4}, {4, 6}}));
  EXPECT_EQ(held(7, 4, 7), (Spans{{4, 7}}));
  EXPECT_EQ(held(9, 8, 9), (Spans{{8, 9}}));
  EXPECT_FALSE(is_subtree({2, 6}, 8));
  EXPECT_FALSE(is_subtree({0, 3}, 4));
  EXPECT_TRUE(is_subtree({0, 3}, 3));
  EXPECT_FALSE(is_subtree({3, 3}, 8));
  EXPECT_FALSE(is_subtree({4, 8}, 7));
}

// Every cut of up to 9 lanes into ranks, with every set of present lanes, against a tree that is
// built level by level.
TEST(LaneTree, AnyCutIntoRanksIsTheSameExpression) {
  const auto join = [](const std::string& a, const std::string& b) { return "(" + a + b + ")"; };
  for (std::size_t lanes = 1; lanes <= 9; ++lanes) {
    for (unsigned present = 0; present < 1u << lanes; ++present) {
      std::string written;
      std::vector<std::optional<std::string>> leaves;
      for (std::size_t i = 0; i < lanes; ++i) {
        const bool here = (present >> i & 1) != 0;
        written += here ? static_cast<char>('a' + i) : '-';
        leaves.push_back(here ? std::optional(std::string(1, written.back())) : std::nullopt);
      }
      const std::string expected = level_tree<std::string>(leaves, join).value_or("");
      ASSERT_EQ(in_one(written), expected);
      // All cuts of few lanes, and of many lanes some.
      for (unsigned cuts = 0; cuts < 1u << (lanes - 1); cuts += lanes < 8 ? 1 : 7)
        ASSERT_EQ(in_ranks(written, cuts), expected) << written << " " << cuts;
    }
  }
}

}  // namespace
}  // namespace troupe::learn
