// Single decisions of the scheduler, each seen through a shadow of the KV memory.
#include "runtime/engine/scheduler.hpp"

#include "tests/unit/runtime/engine/shadow_kv.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

TEST(Scheduler, ComputesAGroupsPromptOnce) {
  Scheduler scheduler(64, 8, 64);
  ShadowKv kv(scheduler, 64, 64);
  kv.submit(make_group(1, 40, 4, 3));
  ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(kv.log(), (std::vector<Event>{{1, 0, 0, 40, true}}));
  // Two full blocks shared, one tail block for each sample.
  EXPECT_EQ(scheduler.tables().pool().free_count(), 64 - 2 - 4);
  ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(kv.log().size(), 5u);
  EXPECT_EQ(kv.log()[4], (Event{1, 3, 40, 1, true}));
}

TEST(Scheduler, ComputesFullPromptBlocksOnceAgainAfterNewWeights) {
  Scheduler scheduler(64, 8, 64);
  ShadowKv kv(scheduler, 64, 64);
  kv.submit(make_group(1, 40, 3, 5));
  ASSERT_TRUE(kv.step(0.0));
  kv.new_weights(KvAction::kRecompute);
  ASSERT_TRUE(kv.step(0.0));
  const std::vector<Event> expected = {
      {1, 0, 0, 40, true}, {1, 0, 0, 41, true}, {1, 1, 32, 9, true}, {1, 2, 32, 9, true}};
  EXPECT_EQ(kv.log(), expected);
}

// First position of the one chunk that is computed beside prompts and newest tokens.
std::int32_t computed_again_from(bool prefix_cache) {
  Scheduler scheduler(8, 4, 64, prefix_cache);
  ShadowKv kv(scheduler, 8, 64);
  kv.submit(make_group(1, 16, 1, 20));
  kv.submit(make_group(2, 33, 2, 40));
  while (kv.step(0.0)) {
  }
  EXPECT_EQ(scheduler.preempted(), 1u);
  EXPECT_EQ(kv.finished(), 3);
  std::vector<Event> chunks;
  for (const Event& event : kv.log()) {
    if (std::get<2>(event) > 0 && std::get<3>(event) > 1) chunks.push_back(event);
  }
  EXPECT_EQ(chunks.size(), 1u);
  EXPECT_EQ(std::get<0>(chunks.at(0)), 2u);
  EXPECT_EQ(std::get<1>(chunks.at(0)), 1);
  return std::get<2>(chunks.at(0));
}

TEST(Scheduler, PreemptedSampleComesBackOnBlocksOfItsGroup) {
  EXPECT_EQ(computed_again_from(false), 32);
}

// Its own full block behind the prompt was not needed by anybody meanwhile.
TEST(Scheduler, PreemptedSampleComesBackOnItsOwnBlocksToo) {
  EXPECT_EQ(computed_again_from(true), 48);
}

TEST(Scheduler, PutsDecodeRowsBeforeChunks) {
  Scheduler scheduler(64, 8, 20);
  ShadowKv kv(scheduler, 64, 20);
  kv.submit(make_group(1, 10, 2, 30));
  ASSERT_TRUE(kv.step(0.0));
  kv.submit(make_group(2, 50, 1, 5));
  ASSERT_TRUE(kv.step(0.0));
  ASSERT_TRUE(kv.step(0.0));
  const std::vector<Event> expected = {
      {1, 0, 0, 10, true}, {1, 0, 10, 1, true}, {1, 1, 10, 1, true},  {2, 0, 0, 18, false},
      {1, 0, 11, 1, true}, {1, 1, 11, 1, true}, {2, 0, 18, 18, false}};
  EXPECT_EQ(kv.log(), expected);
}

TEST(Scheduler, PreemptsTheYoungestAndBringsItBack) {
  Scheduler scheduler(4, 4, 64);
  ShadowKv kv(scheduler, 4, 64);
  kv.submit(make_group(1, 16, 1, 40));
  kv.submit(make_group(2, 8, 1, 40));
  while (scheduler.preempted() == 0)
    ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(scheduler.find({2})->at(0).status, SampleStatus::kPreempted);
  EXPECT_EQ(scheduler.find({1})->at(0).status, SampleStatus::kRunning);
  EXPECT_FALSE(scheduler.find({2})->at(0).out.tokens.empty());
  while (kv.step(0.0)) {
  }
  EXPECT_EQ(kv.finished(), 2);
  EXPECT_EQ(scheduler.tables().pool().free_count(), 4);
}

std::unique_ptr<Group> with_priority(std::unique_ptr<Group> group, std::int32_t priority) {
  group->request.priority = priority;
  return group;
}

TEST(Scheduler, AdmitsByPriorityAndThenInOrder) {
  Scheduler scheduler(64, 1, 64);
  ShadowKv kv(scheduler, 64, 64);
  kv.submit(make_group(1, 8, 1, 3));
  ASSERT_TRUE(kv.step(0.0));
  kv.submit(make_group(2, 8, 1, 3));
  kv.submit(with_priority(make_group(3, 8, 1, 3), -1));
  kv.submit(with_priority(make_group(4, 8, 1, 3), 7));
  kv.submit(make_group(5, 8, 1, 3));
  kv.submit(with_priority(make_group(6, 8, 1, 3), -1));
  while (kv.step(0.0)) {
  }
  std::vector<std::uint64_t> prompts;
  for (const Event& event : kv.log()) {
    if (std::get<2>(event) == 0) prompts.push_back(std::get<0>(event));
  }
  EXPECT_EQ(prompts, (std::vector<std::uint64_t>{1, 3, 6, 2, 5, 4}));
}

// As above, but the older group is the less urgent one; then a third that is more urgent than the
// sample that lost its blocks.
TEST(Scheduler, PreemptsTheLeastUrgentAndLetsMoreUrgentGroupsGoBeforeIt) {
  Scheduler scheduler(4, 4, 64);
  ShadowKv kv(scheduler, 4, 64);
  kv.submit(with_priority(make_group(1, 16, 1, 40), 2));
  kv.submit(make_group(2, 8, 1, 40));
  while (scheduler.preempted() == 0)
    ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(scheduler.find({1})->at(0).status, SampleStatus::kPreempted);
  EXPECT_EQ(scheduler.find({2})->at(0).status, SampleStatus::kRunning);
  const std::size_t before = kv.log().size();
  kv.submit(with_priority(make_group(3, 8, 1, 4), 1));
  while (kv.step(0.0)) {
  }
  std::vector<std::uint64_t> chunks;  // the groups of all that is not a newest token
  for (std::size_t i = before; i < kv.log().size(); ++i) {
    if (std::get<3>(kv.log()[i]) > 1) chunks.push_back(std::get<0>(kv.log()[i]));
  }
  EXPECT_EQ(chunks, (std::vector<std::uint64_t>{3, 1}));
  EXPECT_EQ(kv.finished(), 3);
  EXPECT_EQ(scheduler.tables().pool().free_count(), 4);
}

std::unique_ptr<Group> with_owner(std::unique_ptr<Group> group, std::uint32_t owner) {
  group->request.owner = owner;
  return group;
}

TEST(Scheduler, OwnersTakeTurns) {
  Scheduler scheduler(64, 1, 64);
  ShadowKv kv(scheduler, 64, 64);
  for (std::uint64_t id = 1; id <= 4; ++id)
    kv.submit(with_owner(make_group(id, 8, 1, 3), 1));
  ASSERT_TRUE(kv.step(0.0));
  kv.submit(with_owner(make_group(5, 8, 1, 3), 2));
  kv.submit(with_owner(make_group(6, 8, 1, 3), 2));
  while (kv.step(0.0)) {
  }
  std::vector<std::uint64_t> prompts;
  for (const Event& event : kv.log()) {
    if (std::get<2>(event) == 0) prompts.push_back(std::get<0>(event));
  }
  EXPECT_EQ(prompts, (std::vector<std::uint64_t>{1, 5, 2, 6, 3, 4}));
}

// All seats, or all blocks, are one owner's for as long as a response takes.
TEST(Scheduler, TheOwnerWithMostGivesWay) {
  for (const bool seats : {true, false}) {
    const std::int32_t blocks = seats ? 128 : 40;
    Scheduler scheduler(blocks, seats ? 3 : 16, 64);
    ShadowKv kv(scheduler, blocks, 64);
    for (std::uint64_t id = 1; id <= 3; ++id)
      kv.submit(with_owner(make_group(id, 16, 1, 500), 1));
    for (int i = 0; i < 150; ++i)
      ASSERT_TRUE(kv.step(0.0));
    ASSERT_EQ(scheduler.running(), 3);
    kv.submit(with_owner(make_group(9, 200, 1, 90), 2));
    ASSERT_TRUE(kv.step(0.0));
    EXPECT_EQ(scheduler.find({9})->at(0).status, SampleStatus::kRunning) << seats;
    EXPECT_EQ(scheduler.find({3})->at(0).status, SampleStatus::kPreempted) << "the youngest";
    while (scheduler.find({9}) != nullptr)
      ASSERT_TRUE(kv.step(0.0));
    EXPECT_NE(scheduler.find({1}), nullptr) << "its owner is answered before any of the other's";
    while (kv.step(0.0)) {
    }
    EXPECT_EQ(kv.finished(), 4);
    EXPECT_EQ(scheduler.tables().pool().free_count(), blocks);
  }
}

TEST(Scheduler, GivesEveryDecodeRowItsTurnWhenTheBudgetIsSmall) {
  Scheduler scheduler(64, 8, 3);
  ShadowKv kv(scheduler, 64, 3);
  kv.submit(make_group(1, 3, 7, 10));
  for (int i = 0; i < 15; ++i)
    ASSERT_TRUE(kv.step(0.0));
  std::size_t least = 100, most = 0;
  for (const SampleState& sample : scheduler.find({1})->samples) {
    least = std::min(least, sample.out.tokens.size());
    most = std::max(most, sample.out.tokens.size());
  }
  EXPECT_LE(most - least, 1u);
}

TEST(Scheduler, ScheduleWithoutCommitIsMadeAgain) {
  Scheduler scheduler(64, 8, 16);
  scheduler.submit(make_group(1, 40, 2, 4));
  const Slice first = scheduler.schedule()[0];
  const Slice again = scheduler.schedule()[0];
  EXPECT_EQ(first.first, again.first);
  EXPECT_EQ(first.count, again.count);
}

// Window 20: position 52 sees 33 .. 52, so blocks 0 and 1 are behind it; 51 sees 32 and needs block
// 2 as well.
TEST(Scheduler, GivesBackTheBlocksBehindTheWindow) {
  Scheduler scheduler(64, 8, 64, true, 20);
  ShadowKv kv(scheduler, 64, 64, 20);
  kv.submit(make_group(1, 40, 2, 30));
  ASSERT_TRUE(kv.step(0.0));
  const SampleState& first = scheduler.find({1})->at(0);
  const SampleState& second = scheduler.find({1})->at(1);
  // Position 40 is next and sees 21 .. 40: of the prompt's two full blocks one is behind.
  EXPECT_EQ(first.behind, 1);
  EXPECT_EQ(first.blocks[0], kGoneBlock);
  EXPECT_EQ(second.behind, 1);
  EXPECT_EQ(scheduler.tables().pool().free_count(), 64 - 1 - 2);
  for (int next = 41; next <= 50; ++next)
    ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(first.behind, 1) << "position 50 sees 31, which is in block 1";
  ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(first.behind, 2) << "position 51 sees 32 and what follows";
  EXPECT_EQ(scheduler.tables().pool().free_count(), 64 - 2 * 2);
  kv.check_books();
}

TEST(Scheduler, ABlockBehindTheWindowIsFoundAgainUntilItIsTaken) {
  Scheduler scheduler(64, 8, 64, true, 20);
  ShadowKv kv(scheduler, 64, 64, 20);
  kv.submit(make_group(1, 40, 1, 30));
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(scheduler.find({1})->at(0).behind, 2);
  auto same = make_group(1, 40, 1, 2);
  same->request.id.value = 2;
  kv.submit(std::move(same));
  ASSERT_TRUE(kv.step(0.0));
  EXPECT_EQ(kv.log().back(), (Event{2, 0, 32, 8, true}));
  kv.check_books();
}

// Five samples want three blocks each for a while, and there are fourteen: the last one is set
// back. Its group's other sample has given the prompt's blocks back by then, so it computes them
// alone, in chunks, while the other goes on.
TEST(Scheduler, ASampleComesBackAloneWhenThePromptIsGone) {
  Scheduler scheduler(14, 8, 48, false, 20);
  ShadowKv kv(scheduler, 14, 48, 20);
  kv.submit(make_group(1, 40, 3, 30));
  kv.submit(make_group(2, 40, 2, 90));
  while (scheduler.preempted() == 0)
    ASSERT_TRUE(kv.step(0.0));
  const SampleState& sample = scheduler.find({2})->at(1);
  ASSERT_EQ(sample.status, SampleStatus::kPreempted);
  while (sample.status == SampleStatus::kPreempted)
    ASSERT_TRUE(kv.step(0.0));
  EXPECT_TRUE(sample.alone);
  const Event back = kv.log().back();
  EXPECT_EQ(std::get<0>(back), 2u);
  EXPECT_EQ(std::get<1>(back), 1);
  EXPECT_EQ(std::get<2>(back), 0) << "from the first position";
  EXPECT_FALSE(std::get<4>(back)) << "in more than one step";
  while (kv.step(0.0))
    kv.check_books();
  EXPECT_EQ(scheduler.preempted(), 1u);
  EXPECT_EQ(kv.finished(), 5);
  EXPECT_LE(kv.most_held(), (KvWindow{20, 48}.held_max()));
  EXPECT_EQ(scheduler.tables().pool().free_count(), 14);
}

// Five blocks are just what the first sample may hold at a time. It is set back while another group
// has its prompt's block in the index: what it finds counts among the five.
TEST(Scheduler, WhatIsFoundCountsAmongWhatASampleNeedsToComeBack) {
  const KvWindow window{20, 32};
  ASSERT_EQ(window.held_max(), 5);
  Scheduler scheduler(5, 4, window.step_rows, true, window.tokens);
  ShadowKv kv(scheduler, 5, window.step_rows, window.tokens);
  auto first = make_group(1, 16, 1, 150);
  const std::vector<std::int32_t> prompt = first->request.prompt;
  kv.submit(std::move(first));
  for (int i = 0; i < 84; ++i)
    ASSERT_TRUE(kv.step(0.0));
  kv.submit(make_group(2, prompt, 1, 40));
  while (scheduler.running() < 2)
    ASSERT_TRUE(kv.step(0.0));
  ASSERT_TRUE(kv.step(0.0));
  scheduler.release_all();
  const std::uint64_t hits = scheduler.tables().prefix_hit_tokens();
  while (kv.step(0.0))
    kv.check_books();
  EXPECT_GE(scheduler.tables().prefix_hit_tokens(), hits + 16);
  EXPECT_EQ(kv.finished(), 2);
}

TEST(Scheduler, RemoveFreesWhateverTheStateOfTheGroup) {
  Scheduler scheduler(6, 4, 64);
  ShadowKv kv(scheduler, 6, 64);
  for (std::uint64_t id = 1; id <= 4; ++id)
    kv.submit(make_group(id, 20, 2, 30));
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(kv.step(0.0));
  for (std::uint64_t id = 4; id >= 1; --id)
    ASSERT_NE(kv.remove(id), nullptr);
  EXPECT_EQ(kv.remove(1), nullptr);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.running(), 0);
  EXPECT_EQ(scheduler.tables().pool().free_count(), 6);
}

}  // namespace
}  // namespace troupe::engine
