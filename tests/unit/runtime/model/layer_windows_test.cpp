// What attention costs under windows, counted by hand, and how members share it.
#include "runtime/model/layer_grad.hpp"
#include "runtime/model/spec.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

// A plan of one group for each segment.
ForwardPlan plan_of(const std::vector<kernels::Segment>& segments) {
  ForwardPlan plan;
  plan.segments = segments;
  for (std::size_t g = 0; g <= segments.size(); ++g)
    plan.group_begin.push_back(static_cast<std::int32_t>(g));
  return plan;
}

TEST(LayerWindows, CountsTheKeysThatRowsSee) {
  const LayerWindows none{}, ten{0, 1, 10};
  // Positions 8 to 11 see 9, 10, 11, 12 keys; ten of them where there are more.
  EXPECT_EQ(none.keys_of({0, 4, 8, 0}), 42);
  EXPECT_EQ(ten.keys_of({0, 4, 8, 0}), 39);
  EXPECT_EQ(none.keys_of({0, 100, 0, 0}), 5050);
  EXPECT_EQ(ten.keys_of({0, 100, 0, 0}), 55 + 90 * 10);
  EXPECT_EQ(ten.keys_of({0, 3, 50, 0}), 30) << "all rows past the window";
  EXPECT_EQ((LayerWindows{2, 3, 10}.keys_of({0, 4, 8, 0})), 2 * 42 + 3 * 39);
}

// 1280 keys are 20 blocks of 64. Of them a window of 64 sees the last one, and of 1281 two.
TEST(LayerWindows, CountsTheBlocksThatARowGoesThrough) {
  const LayerWindows none{}, one{0, 1, 64};
  EXPECT_EQ(none.blocks_of(1280), 20);
  EXPECT_EQ(one.blocks_of(1280), 1);
  EXPECT_EQ(none.blocks_of(1281), 21);
  EXPECT_EQ(one.blocks_of(1281), 2);
  EXPECT_EQ(one.blocks_of(5), 1);
  EXPECT_EQ((LayerWindows{4, 2, 64}.blocks_of(1280)), 4 * 20 + 2 * 1);
}

TEST(LayerWindows, OfAModel) {
  ModelSpec spec = tiny_spec();
  EXPECT_EQ(spec.layer_windows().full, spec.layers);
  EXPECT_EQ(spec.window_of_all(), 0);
  spec.window = 9;
  spec.sliding = {true, false};
  EXPECT_EQ(spec.layer_windows().full, 1);
  EXPECT_EQ(spec.layer_windows().sliding, 1);
  EXPECT_EQ(spec.window_of_all(), 0);
  spec.sliding = {true, true};
  EXPECT_EQ(spec.layer_windows().full, 0);
  EXPECT_EQ(spec.window_of_all(), 9);
}

std::vector<std::int32_t> groups_of(const AttentionUnits& units, int member) {
  std::vector<std::int32_t> groups;
  for (const kernels::AttentionUnit& unit : units.of(member))
    groups.push_back(unit.segment_begin);  // one segment each
  return groups;
}

// One sequence of 100 rows and eight of 20. Where rows see everything they cost 5050 and 210 each,
// so the long one fills a member; under a window of 10 they cost 955 and 155.
TEST(AttentionUnits, AreSharedByWhatTheWindowLeaves) {
  std::vector<kernels::Segment> segments = {{0, 100, 0, 0}};
  for (std::int32_t i = 0; i < 8; ++i)
    segments.push_back({100 + 20 * i, 20, 0, 0});
  const ForwardPlan plan = plan_of(segments);
  AttentionUnits units;
  units.assign(plan, 1, {}, 2);
  EXPECT_EQ(units.load(0), 5050);
  EXPECT_EQ(units.load(1), 8 * 210);
  EXPECT_EQ(groups_of(units, 0), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(groups_of(units, 1), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  units.assign(plan, 1, {0, 1, 10}, 2);
  EXPECT_EQ(units.load(0), 955 + 155);
  EXPECT_EQ(units.load(1), 7 * 155);
  // Seven times 155 are more than 955, so the eighth goes to the first member.
  EXPECT_EQ(groups_of(units, 0), (std::vector<std::int32_t>{0, 8}));
  EXPECT_EQ(groups_of(units, 1), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7}));
}

// Twelve single rows, one at position 1279 and eleven at 63: 20 blocks and eleven times one, or
// under a window of 64 one block each.
TEST(ForwardPlan, SharesItemsByWhatTheWindowLeaves) {
  std::vector<kernels::Segment> segments = {{0, 1, 1279, 0}};
  for (std::int32_t i = 1; i < 12; ++i)
    segments.push_back({i, 1, 63, 0});
  ForwardPlan plan = plan_of(segments);
  plan.finish(1, 2);
  EXPECT_EQ(plan.item_begin, (std::vector<std::int32_t>{0, 1, 12}));
  plan.finish(1, 2, 1, {0, 1, 64});
  EXPECT_EQ(plan.item_begin, (std::vector<std::int32_t>{0, 6, 12}));
}

}  // namespace
}  // namespace troupe::model
