// Plans of updates: order, bounds, splitting.
#include "runtime/learn/rl/micro_batch.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/learn/lanes/even_cut.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

experience::Group group_of_lengths(std::uint32_t slot,
                                   std::size_t prompt,
                                   const std::vector<std::size_t>& lengths) {
  experience::Group group;
  group.ticket = {7, slot, 0};
  group.prompt.assign(prompt, 1);
  for (const std::size_t length : lengths) {
    group.samples.emplace_back();
    group.samples.back().tokens.assign(length, 2);
  }
  return group;
}

BatchSettings batch_of(std::int64_t rows, std::int64_t mini_batches = 1) {
  BatchSettings batch;
  batch.micro_tokens_max = rows;
  batch.mini_batches = mini_batches;
  return batch;
}

// Sizes in rows of the micro-batches of a plan's only mini-batch.
std::vector<std::int64_t> rows_of(const core::Result<UpdatePlan>& plan) {
  std::vector<std::int64_t> rows;
  for (const MicroBatch& micro : plan->mini_batches.front().micro_batches)
    rows.push_back(micro.rows);
  return rows;
}

}  // namespace

TEST(PlanUpdate, CountsTheSharedPromptOnceAndDropsTheLastTokens) {
  const experience::Group group = group_of_lengths(0, 5, {3, 4, 1});
  EXPECT_EQ(part_rows(group, 0, 3), 5 + 2 + 3 + 0);
  EXPECT_EQ(part_rows(group, 1, 2), 5 + 3);
  const auto plan = plan_update({group}, batch_of(100));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->rows, 10);
  EXPECT_EQ(plan->tokens, 8);
  EXPECT_EQ(plan->samples, 3);
}

TEST(PlanUpdate, KeepsGroupsWholeWhileTheyFit) {
  // Rows 10, 10, 10 with a bound of 25: two groups, then one.
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    groups.push_back(group_of_lengths(slot, 4, {4, 4}));
  const auto plan = plan_update(groups, batch_of(25));
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->mini_batches.size(), 1u);
  const auto& micro = plan->mini_batches[0].micro_batches;
  ASSERT_EQ(micro.size(), 2u);
  EXPECT_EQ(micro[0].parts.size(), 2u);
  EXPECT_EQ(micro[0].rows, 20);
  EXPECT_EQ(micro[1].parts[0].group, 2u);
}

TEST(PlanUpdate, MicroBatchesAreAsEqualAsWholeGroupsAllow) {
  // Four groups of 10 rows with a bound of 35: two and two, not three and one.
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    groups.push_back(group_of_lengths(slot, 4, {4, 4}));
  const auto plan = plan_update(groups, batch_of(35));
  ASSERT_TRUE(plan.has_value());
  const auto& micro = plan->mini_batches[0].micro_batches;
  ASSERT_EQ(micro.size(), 2u);
  EXPECT_EQ(micro[0].rows, 20);
  EXPECT_EQ(micro[1].rows, 20);
}

TEST(PlanUpdate, SplitsALargeGroupBetweenSamples) {
  // Prompt 4, each sample 3 rows more; a bound of 11 takes two samples at a time.
  const auto plan = plan_update({group_of_lengths(0, 4, {4, 4, 4, 4, 4})}, batch_of(11));
  ASSERT_TRUE(plan.has_value());
  const auto& micro = plan->mini_batches[0].micro_batches;
  ASSERT_EQ(micro.size(), 3u);
  EXPECT_EQ(micro[0].rows, 10);
  EXPECT_EQ(micro[1].parts[0].sample_begin, 2u);
  EXPECT_EQ(micro[2].parts[0].sample_end, 5u);
  EXPECT_EQ(micro[2].rows, 7);
}

TEST(PlanUpdate, FollowsTicketsNotArrival) {
  const auto plan = plan_update({group_of_lengths(2, 4, {2, 2}), group_of_lengths(0, 4, {2, 2}),
                                 group_of_lengths(1, 4, {2, 2})},
                                batch_of(100));
  ASSERT_TRUE(plan.has_value());
  const auto& parts = plan->mini_batches[0].micro_batches[0].parts;
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].group, 1u);
  EXPECT_EQ(parts[1].group, 2u);
  EXPECT_EQ(parts[2].group, 0u);
}

TEST(PlanUpdate, MiniBatchesDifferByAtMostOneGroup) {
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < 7; ++slot)
    groups.push_back(group_of_lengths(slot, 4, {2, 2}));
  const auto plan = plan_update(groups, batch_of(100, 3));
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->mini_batches.size(), 3u);
  EXPECT_EQ(plan->mini_batches[0].tokens, 8);
  EXPECT_EQ(plan->mini_batches[2].tokens, 12);
  EXPECT_EQ(plan_update(groups, batch_of(100, 50))->mini_batches.size(), 7u);
}

TEST(PlanUpdate, TakesEverySampleOnceWithinTheBound) {
  core::Rng rng(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<experience::Group> groups;
    std::int64_t tokens = 0;
    for (std::uint32_t slot = 0; slot < 9; ++slot) {
      std::vector<std::size_t> lengths;
      for (std::uint64_t n = 2 + rng.next_below(6); n > 0; --n) {
        lengths.push_back(1 + rng.next_below(20));
        tokens += static_cast<std::int64_t>(lengths.back());
      }
      groups.push_back(group_of_lengths(slot, 1 + rng.next_below(20), lengths));
    }
    const auto plan = plan_update(groups, batch_of(40, 1 + static_cast<std::int64_t>(round % 4)));
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->tokens, tokens);
    std::size_t group = 0, sample = 0;
    for (const auto& mini : plan->mini_batches) {
      for (const auto& micro : mini.micro_batches) {
        EXPECT_LE(micro.rows, 40);
        for (const auto& part : micro.parts) {
          if (sample == groups[group].samples.size()) ++group, sample = 0;
          EXPECT_EQ(part.group, group);
          EXPECT_EQ(part.sample_begin, sample);
          EXPECT_LT(part.sample_begin, part.sample_end);
          sample = part.sample_end;
        }
      }
    }
    EXPECT_EQ(group, groups.size() - 1);
    EXPECT_EQ(sample, groups.back().samples.size());
  }
}

TEST(PlanUpdate, PutsGroupsThatTeachNothingLastAndApart) {
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    groups.push_back(group_of_lengths(slot, 4, {2, 2}));
  const auto plan = plan_update(groups, batch_of(100), {true, false, true, false});
  ASSERT_TRUE(plan.has_value());
  const auto& micro = plan->mini_batches[0].micro_batches;
  ASSERT_EQ(micro.size(), 2u);
  EXPECT_TRUE(micro[0].learns);
  EXPECT_EQ(micro[0].parts[1].group, 2u);
  EXPECT_FALSE(micro[1].learns);
  EXPECT_EQ(micro[1].parts[1].group, 3u);
  EXPECT_EQ(plan->tokens, 16);
}

TEST(PlanUpdateForLanes, MakesWholeRoundsOfEvenMicroBatches) {
  // Seven groups of 10 rows. One micro-batch holds them all; two lanes take four and three.
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < 7; ++slot)
    groups.push_back(group_of_lengths(slot, 4, {4, 4}));
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(rows_of(plan_update(groups, batch_of(100), {}, {.lanes = 1})), (Rows{70}));
  EXPECT_EQ(rows_of(plan_update(groups, batch_of(100), {}, {.lanes = 2})), (Rows{40, 30}));
  EXPECT_EQ(rows_of(plan_update(groups, batch_of(100), {}, {.lanes = 3})), (Rows{30, 30, 10}));
  // A bound of 25 wants four micro-batches: six fill two rounds of three.
  EXPECT_EQ(rows_of(plan_update(groups, batch_of(25), {}, {.lanes = 3})),
            (Rows{20, 10, 10, 10, 10, 10}));
  EXPECT_EQ(rows_of(plan_update(groups, batch_of(100), {}, {.lanes = 7})), Rows(7, 10));
}

TEST(PlanUpdateForLanes, SplitsGroupsWhereALaneWouldBeEmpty) {
  // Two groups of three samples with a prompt of 4 rows and 3 rows a sample, four lanes: a sample
  // and two of the first group, the same of the second.
  const std::vector<experience::Group> groups = {group_of_lengths(0, 4, {4, 4, 4}),
                                                 group_of_lengths(1, 4, {4, 4, 4})};
  const auto plan = plan_update(groups, batch_of(100), {}, {.lanes = 4});
  ASSERT_TRUE(plan);
  const auto& micro = plan->mini_batches.front().micro_batches;
  ASSERT_EQ(micro.size(), 4u);
  EXPECT_EQ(rows_of(plan), (std::vector<std::int64_t>{10, 7, 10, 7}));
  EXPECT_EQ(micro[0].parts.size(), 1u);
  EXPECT_EQ(micro[0].parts[0].sample_end, 2u);
  EXPECT_EQ(micro[1].parts[0].sample_begin, 2u);
  EXPECT_EQ(micro[2].parts[0].group, 1u);
  EXPECT_EQ(plan->rows, 34);  // two prompts are computed twice
  EXPECT_EQ(plan->tokens, 24);
  // Where a group must stay whole, lanes stay empty.
  EXPECT_EQ(rows_of(plan_update(groups, batch_of(100), {}, {4, true})),
            (std::vector<std::int64_t>{13, 13}));
  // Fewer samples than lanes: each is a micro-batch.
  EXPECT_EQ(rows_of(plan_update(groups, batch_of(100), {}, {.lanes = 8})),
            std::vector<std::int64_t>(6, 7));
}

TEST(PlanUpdateForLanes, GroupsThatTeachNothingMakeRoundsOfTheirOwn) {
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < 5; ++slot)
    groups.push_back(group_of_lengths(slot, 4, {2, 2}));
  const auto plan =
      plan_update(groups, batch_of(100), {true, false, true, false, true}, {.lanes = 2});
  ASSERT_TRUE(plan);
  const auto& micro = plan->mini_batches.front().micro_batches;
  ASSERT_EQ(micro.size(), 4u);
  EXPECT_TRUE(micro[0].learns && micro[1].learns);
  EXPECT_FALSE(micro[2].learns || micro[3].learns);
  EXPECT_EQ(micro[0].parts[1].group, 2u);
  EXPECT_EQ(micro[2].parts[0].group, 1u);
}

TEST(PlanUpdateForLanes, TakesEverySampleOnceWithinTheBound) {
  core::Rng rng(5);
  for (int round = 0; round < 60; ++round) {
    const auto lanes = static_cast<std::int64_t>(2 + rng.next_below(9));
    std::vector<experience::Group> groups;
    std::vector<bool> learns;
    std::size_t learning = 0, looking = 0;
    for (std::uint32_t slot = 0; slot < 6; ++slot) {
      std::vector<std::size_t> lengths;
      for (std::uint64_t n = 1 + rng.next_below(8); n > 0; --n)
        lengths.push_back(1 + rng.next_below(20));
      groups.push_back(group_of_lengths(slot, 1 + rng.next_below(20), lengths));
      learns.push_back(rng.next_below(3) > 0);
      (learns.back() ? learning : looking) += lengths.size();
    }
    const auto plan = plan_update(groups, batch_of(40), learns, {.lanes = lanes});
    ASSERT_TRUE(plan);
    std::vector<std::vector<int>> seen;
    for (const auto& group : groups)
      seen.emplace_back(group.samples.size(), 0);
    std::size_t counts[2] = {0, 0};
    for (const MicroBatch& micro : plan->mini_batches.front().micro_batches) {
      EXPECT_LE(micro.rows, 40);
      ++counts[micro.learns ? 1 : 0];
      std::int64_t rows = 0;
      for (const GroupPart& part : micro.parts) {
        EXPECT_EQ(learns[part.group], micro.learns);
        rows += part_rows(groups[part.group], part.sample_begin, part.sample_end);
        for (std::size_t i = part.sample_begin; i < part.sample_end; ++i)
          ++seen[part.group][i];
      }
      EXPECT_EQ(rows, micro.rows);
    }
    for (const auto& group : seen)
      EXPECT_EQ(group, std::vector<int>(group.size(), 1));
    EXPECT_TRUE(counts[1] % static_cast<std::size_t>(lanes) == 0 || counts[1] == learning);
    EXPECT_TRUE(counts[0] % static_cast<std::size_t>(lanes) == 0 || counts[0] == looking);
  }
}

TEST(EvenCut, HasTheSmallestLargestRun) {
  const auto cut = [](const std::vector<std::int64_t>& costs, std::size_t runs) {
    const RunCost cost = [&](UnitRun run) {
      std::int64_t sum = 0;
      for (std::size_t i = run.begin; i < run.end; ++i)
        sum += costs[i];
      return sum;
    };
    return even_cut(costs.size(), cost, runs);
  };
  using Runs = std::vector<UnitRun>;
  EXPECT_EQ(cut({5, 5, 5, 5}, 2), (Runs{{0, 2}, {2, 4}}));
  EXPECT_EQ(cut({9, 1, 1, 1}, 2), (Runs{{0, 1}, {1, 4}}));
  EXPECT_EQ(cut({1, 1, 1, 9}, 3), (Runs{{0, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(cut({4, 4}, 5), (Runs{{0, 1}, {1, 2}}));
  EXPECT_EQ(cut({}, 3), Runs{});
}

TEST(PlanUpdate, RefusesWhatCannotBePlanned) {
  EXPECT_EQ(plan_update({}, batch_of(10)).error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_EQ(plan_update({group_of_lengths(0, 0, {2})}, batch_of(10)).error().code,
            core::ErrorCode::kInvalidArgument);
  EXPECT_EQ(plan_update({group_of_lengths(0, 2, {2, 0})}, batch_of(10)).error().code,
            core::ErrorCode::kInvalidArgument);
  const auto twice =
      plan_update({group_of_lengths(4, 2, {2, 2}), group_of_lengths(4, 2, {2, 2})}, batch_of(10));
  EXPECT_NE(twice.error().message.find("prompt 5"), std::string::npos);
  const auto longer = plan_update({group_of_lengths(3, 6, {2, 6})}, batch_of(10));
  EXPECT_EQ(longer.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(longer.error().message.find("micro_tokens_max"), std::string::npos);
}

}  // namespace troupe::learn
