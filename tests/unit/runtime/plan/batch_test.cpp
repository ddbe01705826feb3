// The batch arithmetic against the planner of updates, and by hand.
#include "runtime/plan/batch.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/learn/rl/micro_batch.hpp"

#include <gtest/gtest.h>

namespace troupe::plan {
namespace {

std::vector<experience::Group> groups_of(const BatchFacts& facts) {
  std::vector<experience::Group> groups;
  for (std::int64_t g = 0; g < facts.groups; ++g) {
    experience::Group group;
    group.ticket = {0, static_cast<std::uint32_t>(g), 0};
    group.prompt.assign(static_cast<std::size_t>(facts.shared_rows), 1);
    experience::Trajectory sample;
    sample.tokens.assign(static_cast<std::size_t>(facts.sample_rows) + 1, 2);
    group.samples.assign(static_cast<std::size_t>(facts.samples), sample);
    groups.push_back(std::move(group));
  }
  return groups;
}

TEST(Batch, CountsTheMicroBatchesThatUpdatesAreCutInto) {
  core::Rng rng(8);
  for (int trial = 0; trial < 200; ++trial) {
    BatchFacts facts;
    facts.groups = 1 + static_cast<std::int64_t>(rng.next_below(12));
    facts.samples = 1 + static_cast<std::int64_t>(rng.next_below(6));
    facts.shared_rows = 1 + static_cast<std::int64_t>(rng.next_below(20));
    facts.sample_rows = 1 + static_cast<std::int64_t>(rng.next_below(20));
    facts.rows_max =
        facts.shared_rows + facts.sample_rows + static_cast<std::int64_t>(rng.next_below(150));
    facts.lanes = 1 + static_cast<std::int64_t>(rng.next_below(4));
    const auto batch = batch_of(facts);
    ASSERT_TRUE(batch);
    learn::BatchSettings settings;
    settings.micro_tokens_max = facts.rows_max;
    const auto plan = learn::plan_update(groups_of(facts), settings, {}, {facts.lanes, false});
    ASSERT_TRUE(plan);
    EXPECT_EQ(batch->micro_batches, plan->micro_batches)
        << facts.groups << " groups of " << facts.samples << " samples, prompt "
        << facts.shared_rows << ", sample " << facts.sample_rows << ", micro-batch "
        << facts.rows_max << ", lanes " << facts.lanes;
  }
}

// 32 prompts of 8 samples; a group has 100 + 8 x 50 = 500 rows, so 4 fit 2,048: 8 micro-batches.
TEST(Batch, IsWorkedOutByHand) {
  BatchFacts facts;
  facts.groups = 32;
  facts.samples = 8;
  facts.shared_rows = 100;
  facts.sample_rows = 50;
  facts.rows_max = 2048;
  facts.lanes = 8;
  facts.ranks = 4;
  const auto batch = batch_of(facts);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->rows, 32 * 500);
  EXPECT_EQ(batch->micro_batches, 8);
  EXPECT_EQ(batch->rounds, 1);
  EXPECT_EQ(batch->lanes_of_rank, 2);
  EXPECT_EQ(batch->of_rank(), 2);
  facts.rows_max = 149;
  const auto small = batch_of(facts);
  ASSERT_FALSE(small);
  EXPECT_NE(small.error().message.find("--train.micro_tokens_max 150"), std::string::npos);
}

}  // namespace
}  // namespace troupe::plan
