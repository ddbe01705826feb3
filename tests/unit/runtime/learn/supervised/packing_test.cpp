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

}  // namespace
}  // namespace troupe::learn
