// First fit, longest first.
#include "runtime/learn/supervised/packing.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

using Batches = std::vector<std::vector<std::size_t>>;

TEST(Packing, FillsMicroBatchesLongestFirst) {
  const std::vector<std::int64_t> costs = {3, 7, 2, 10, 5};
  EXPECT_EQ(pack_longest_first(costs, 10), (Batches{{3}, {1, 0}, {4, 2}}));
}

TEST(Packing, LeavesOutWhatHasNothingToLearn) {
  const std::vector<std::int64_t> costs = {0, 4, 0};
  EXPECT_EQ(pack_longest_first(costs, 10), (Batches{{1}}));
}

TEST(Packing, EqualRowsKeepTheirOrder) {
  const std::vector<std::int64_t> costs = {4, 4, 4};
  EXPECT_EQ(pack_longest_first(costs, 8), (Batches{{0, 1}, {2}}));
}

TEST(Packing, LanesGetWholeRoundsOfEvenMicroBatches) {
  const std::vector<std::int64_t> costs = {3, 7, 2, 10, 5, 0};
  // 10 | 7 | 5 + 3: 8 | 2 goes to the emptiest.
  EXPECT_EQ(pack_for_lanes(costs, 20, 3), (Batches{{3}, {1, 2}, {4, 0}}));
  EXPECT_EQ(pack_for_lanes(costs, 20, 2), (Batches{{3, 0}, {1, 4, 2}}));
  EXPECT_EQ(pack_for_lanes(costs, 20, 1), pack_longest_first(costs, 20));
  // Four lanes; three micro-batches of 10 would hold them.
  EXPECT_EQ(pack_for_lanes(costs, 10, 4), (Batches{{3}, {1}, {4}, {0, 2}}));
  // Fewer rows than lanes.
  EXPECT_EQ(pack_for_lanes(costs, 20, 8), (Batches{{3}, {1}, {4}, {0}, {2}}));
  EXPECT_EQ(pack_for_lanes(std::vector<std::int64_t>{0}, 20, 8), Batches{});
}

// First fit takes two: 3 + 3 and 2 + 2 + 2. Emptiest first has 5 and 5 when the last 2 comes.
TEST(Packing, AnotherRoundWhereTheEmptiestHasNoRoom) {
  const std::vector<std::int64_t> costs = {3, 3, 2, 2, 2};
  EXPECT_EQ(pack_longest_first(costs, 6), (Batches{{0, 1}, {2, 3, 4}}));
  EXPECT_EQ(pack_for_lanes(costs, 6, 2), (Batches{{0}, {1}, {2, 4}, {3}}));
}

TEST(Packing, ValuesComeBackInTheOrderOfTheRows) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const std::vector<std::size_t> counts = {1, 2, 0, 3};
  EXPECT_EQ(in_row_order(values, {{3, 0}, {2, 1}}, counts),
            (std::vector<double>{4, 5, 6, 1, 2, 3}));
}

}  // namespace
}  // namespace troupe::learn
