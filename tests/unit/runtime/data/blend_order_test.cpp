// Shares of files: exact in every pass, seeded, the same from any place.
#include "runtime/data/blend_order.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::data {
namespace {

constexpr std::uint64_t kSizes[] = {10, 90};

TEST(BlendOrder, WithoutSharesItIsTheOrderOfAllRows) {
  auto blend = BlendOrder::create(kSizes, {}, 7);
  ASSERT_TRUE(blend);
  PromptOrder order(100, 7);
  for (std::uint64_t i = 0; i < 250; ++i)
    ASSERT_EQ(blend->row_at(i), order.row_at(i));
}

TEST(BlendOrder, SharesAreExactInEveryPass) {
  const double shares[] = {3, 1};
  auto blend = BlendOrder::create(kSizes, shares, 7);
  ASSERT_TRUE(blend);
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    int small = 0;
    for (std::uint64_t i = 0; i < 100; ++i)
      small += blend->row_at(pass * 100 + i) < 10 ? 1 : 0;
    EXPECT_EQ(small, 75) << pass;
  }
  // The large file goes on where it was: its first 75 places are 75 different rows.
  std::set<std::uint64_t> large;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t row = blend->row_at(i);
    if (row >= 10) large.insert(row);
  }
  EXPECT_EQ(large.size(), 75u);
}

TEST(BlendOrder, AnyPlaceIsAFunctionOfItsIndex) {
  const double shares[] = {0.4, 0.6};
  auto forward = BlendOrder::create(kSizes, shares, 3);
  auto jumping = BlendOrder::create(kSizes, shares, 3);
  auto other = BlendOrder::create(kSizes, shares, 4);
  ASSERT_TRUE(forward && jumping && other);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t i = 0; i < 220; ++i)
    rows.push_back(forward->row_at(i));
  int differing = 0;
  for (std::uint64_t i = 220; i-- > 0;) {
    ASSERT_EQ(jumping->row_at(i), rows[i]);
    differing += other->row_at(i) == rows[i] ? 0 : 1;
  }
  EXPECT_GT(differing, 100);
}

TEST(BlendOrder, RunsGoWithoutShares) {
  auto blend = BlendOrder::create(kSizes, {}, 7, {0, 2});
  ASSERT_TRUE(blend);
  const std::uint64_t first = blend->row_at(0);
  EXPECT_EQ(first == 0 ? blend->row_at(1) : blend->row_at(blend->rows() - 1), 1u);
  const std::vector<double> both = {1, 1};
  EXPECT_EQ(BlendOrder::create(kSizes, both, 1, {0, 2}).error().message,
            "data.rows_together: files are blended by data.probs row by row; give one of the two");
}

TEST(BlendOrder, RefusesSharesThatDoNotFit) {
  const double one[] = {1}, none[] = {0, 0}, both[] = {1, 1};
  const std::uint64_t empty[] = {5, 0};
  EXPECT_EQ(BlendOrder::create(kSizes, one, 1).error().message,
            "data.probs: 1 share(s) for 2 file(s); give one for each");
  EXPECT_EQ(BlendOrder::create(kSizes, none, 1).error().message, "data.probs: all are 0");
  EXPECT_EQ(BlendOrder::create(empty, both, 1).error().message,
            "data.probs: file 2 has a share and no rows");
}

}  // namespace
}  // namespace troupe::data
