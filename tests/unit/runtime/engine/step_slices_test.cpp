// What a step computes of samples that run, within its rows.
#include "runtime/engine/step_slices.hpp"

#include "runtime/engine/owner_shares.hpp"
#include "tests/unit/runtime/engine/shadow_groups.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace troupe::engine {
namespace {

// A group whose samples run: its prompt is computed, and each has drawn one token.
std::unique_ptr<Group> decoding(std::uint64_t id, std::int32_t samples) {
  auto group = make_group(id, 16, samples, 9);
  group->forked = true;
  group->shared_computed = group->shared_positions();
  for (SampleState& sample : group->samples) {
    sample.status = SampleStatus::kRunning;
    sample.out.tokens = {7};
    sample.computed = 16;
  }
  return group;
}

using Row = std::tuple<std::uint64_t, std::int32_t, std::int32_t, std::int32_t, bool>;

std::vector<Row> rows_of(const StepSlices& step) {
  std::vector<Row> rows;
  for (const Slice& slice : step.slices())
    rows.emplace_back(slice.group->request.id.value, slice.sample, slice.first, slice.count,
                      slice.draws);
  return rows;
}

TEST(StepSlices, NewestTokensComeBeforePrompts) {
  ActiveGroups active;
  active.push_back(make_group(1, 40, 2, 9));
  active.back()->at(0).status = active.back()->at(1).status = SampleStatus::kRunning;
  active.push_back(decoding(2, 2));
  StepSlices step(8, 20);
  step.begin(active);
  step.add_running(active);
  EXPECT_EQ(rows_of(step),
            (std::vector<Row>{{2, 0, 16, 1, true}, {2, 1, 16, 1, true}, {1, 0, 0, 18, false}}));
  EXPECT_TRUE(step.full());
  EXPECT_EQ(active[0]->shared_planned, 18);
}

TEST(StepSlices, SamplesTakeTurnsWhereNotAllFit) {
  ActiveGroups active;
  active.push_back(decoding(1, 3));
  StepSlices step(8, 2);
  const auto samples = [&] {
    step.begin(active);
    step.add_running(active);
    std::vector<std::int32_t> all;
    for (const Slice& slice : step.slices())
      all.push_back(slice.sample);
    return all;
  };
  EXPECT_EQ(samples(), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(samples(), (std::vector<std::int32_t>{2, 0}));
  EXPECT_EQ(samples(), (std::vector<std::int32_t>{1, 2}));
}

TEST(OwnerTurns, TheOwnerWithFewestBlocksThenWhoWaitedLongest) {
  ActiveGroups active;
  active.push_back(decoding(1, 1));
  active.back()->request.owner = 1;
  active.back()->at(0).blocks = {4, 5};
  WaitingGroups waiting;
  for (const std::uint32_t owner : {1u, 2u, 3u, 2u}) {
    waiting.push_back(make_group(10 + waiting.size(), 16, 1, 9));
    waiting.back()->request.owner = owner;
  }
  OwnerTurns turns;
  EXPECT_EQ(turns.next(active, waiting).waiting - waiting.begin(), 1);  // owner 2, its first
  turns.entered(2);
  EXPECT_EQ(turns.next(active, waiting).waiting - waiting.begin(), 2);  // owner 3
  turns.entered(3);
  EXPECT_EQ(turns.next(active, waiting).waiting - waiting.begin(), 1);
  waiting[0]->request.priority = -1;  // urgent
  EXPECT_EQ(turns.next(active, waiting).waiting - waiting.begin(), 0);
  active[0]->at(0).status = SampleStatus::kPreempted;
  active[0]->request.priority = -1;  // now owner 1 has no block either; who goes on is first
  EXPECT_EQ(turns.next(active, waiting).sample, &active[0]->at(0));
  WaitingGroups nobody;
  EXPECT_EQ(turns.next({}, nobody).group, nullptr);
}

}  // namespace
}  // namespace troupe::engine
