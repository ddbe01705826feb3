// The lists of a device's sampler, on jobs whose order is worked out by hand.
#include "runtime/engine/draw_slots.hpp"

#include "tests/unit/runtime/engine/shadow_groups.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

using Ints = std::vector<std::int32_t>;

TEST(DrawSlots, AreOrderedByBatchAndKind) {
  const auto kept = make_group(1, 4, 1, 1), plain = make_group(2, 4, 1, 1);
  kept->request.sampling.top_k = 3;
  plain->request.sampling.top_logprobs = 2;
  plain->request.sampling.logit_bias = {{5, 1.0f}};
  DrawSlots slots(100, 2);
  slots.begin(5);
  const auto add = [&](std::size_t index, Group& group, std::int32_t row, std::int32_t target) {
    slots.add(index, {.group = &group, .logit_row = row, .target = target}, 0.25, {});
  };
  add(0, *kept, 0, -1);
  add(1, *plain, 1, -1);
  add(2, *plain, 1, -1);  // of the same row
  add(3, *kept, 4, 9);
  add(4, *plain, 4, -1);
  slots.order();
  const DrawLists& lists = slots.lists();
  std::vector<std::size_t> order;
  for (const DrawSlot& slot : lists.slots)
    order.push_back(slot.index);
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 2, 0, 4, 3}));
  EXPECT_EQ(lists.rows, (Ints{1, 1, 0, 0, 0}));
  EXPECT_EQ(lists.tokens, (Ints{0, 0, 0, 0, 9}));
  EXPECT_EQ(lists.truncations[2].top_k, 3);
  // Slots by head row: row 0 has slot 2, row 1 has 0 and 1, row 4 has 3 and 4.
  EXPECT_EQ(lists.target_begin, (Ints{0, 1, 3, 3, 3, 5}));
  EXPECT_EQ(lists.targets, (Ints{2, 0, 1, 3, 4}));
  EXPECT_EQ(lists.top_rows, (Ints{1, 1, 0}));
  EXPECT_EQ(lists.top_begin, (Ints{0, 2, 4, 6}));
  ASSERT_EQ(lists.changes.size(), 2u);  // of rows 1 and 4, once each
  EXPECT_EQ(lists.changes[0].row, 1);
  EXPECT_EQ(lists.changes[1].row, 0);  // of the third batch

  ASSERT_EQ(lists.batches.size(), 3u);
  const DrawBatch &first = lists.batches[0], &last = lists.batches[2];
  EXPECT_EQ(std::tuple(first.plain, first.kept, first.scored, first.end),
            std::tuple(0u, 2u, 3u, 3u));
  EXPECT_EQ(lists.batches[1].end, lists.batches[1].plain);
  EXPECT_EQ(std::tuple(last.plain, last.kept, last.scored, last.end), std::tuple(3u, 4u, 4u, 5u));
  EXPECT_EQ(std::tuple(first.rows.begin, first.rows.end), std::tuple(0, 2));
  EXPECT_EQ(std::tuple(last.change_begin, last.change_end), std::tuple(1u, 2u));
  EXPECT_EQ(std::tuple(last.top_begin, last.top_end), std::tuple(2u, 3u));
  EXPECT_TRUE(first.raw && !first.entropy);
}

}  // namespace
}  // namespace troupe::engine
