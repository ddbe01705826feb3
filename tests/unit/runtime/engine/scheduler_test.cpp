// The scheduler without a model: a shadow of the KV memory records, for every slot, which prefix of
// which sample was written there and under which weights. After each step every position that a
// slice attends to must hold the sample's own prefix; so a wrong share, a missed copy or a stale
// block is seen at once.
#include "runtime/engine/scheduler.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace troupe::engine {
namespace {

using Event = std::tuple<std::uint64_t, std::int32_t, std::int32_t, std::int32_t, bool>;

std::unique_ptr<Group> make_group(std::uint64_t id,
                                  std::int32_t prompt,
                                  std::int32_t samples,
                                  std::int32_t max_new) {
  auto group = std::make_unique<Group>();
  group->request.id.value = id;
  for (std::int32_t i = 0; i < prompt; ++i) {
    group->request.prompt.push_back(static_cast<std::int32_t>(id) * 1000 + i);
  }
  group->request.samples = samples;
  group->request.sampling.max_new_tokens = max_new;
  group->samples.resize(static_cast<std::size_t>(samples));
  for (std::int32_t i = 0; i < samples; ++i)
    group->at(i).out.index = i;
  return group;
}

// What a slot must hold: a hash of all tokens up to its position, and of the weights.
class ShadowKv {
 public:
  ShadowKv(Scheduler& scheduler, std::int32_t blocks, std::int32_t budget)
      : scheduler_(scheduler),
        slots_(static_cast<std::size_t>(blocks * kBlockTokens), 0),
        budget_(budget) {}

  // One step: writes all slices, checks what they see, commits, draws; true when there was work.
  bool step(core::Rng& rng, double finish_chance) {
    const auto span = scheduler_.schedule();
    const std::vector<Slice> slices(span.begin(), span.end());
    std::int32_t rows = 0;
    for (const Slice& slice : slices) {
      log_.emplace_back(slice.group->request.id.value, slice.sample, slice.first, slice.count,
                        slice.draws);
      rows += slice.count;
      write(slice);
    }
    EXPECT_LE(rows, budget_);
    for (const Slice& slice : slices)
      check(slice);
    std::vector<std::pair<Group*, std::int32_t>> draws;
    for (const Slice& slice : slices) {
      if (!slice.draws) continue;
      const bool all = !slice.group->forked;
      for (std::int32_t i = 0; i < slice.group->request.samples; ++i) {
        if (all || i == slice.sample) draws.emplace_back(slice.group, i);
      }
    }
    std::vector<BlockCopy> copies;
    for (const Slice& slice : slices)
      scheduler_.commit(slice, copies);
    for (const BlockCopy& copy : copies) {
      const auto from = slots_.begin() + copy.from * kBlockTokens;
      std::copy_n(from, kBlockTokens, slots_.begin() + copy.to * kBlockTokens);
    }
    for (const auto& [group, index] : draws)
      draw(*group, index, rng, finish_chance);
    scheduler_.sweep();
    return !slices.empty();
  }

  void new_weights() {
    ++weights_;
    scheduler_.forget_computed();
  }
  const std::vector<Event>& log() const { return log_; }
  std::int64_t finished() const { return finished_; }

 private:
  std::uint64_t prefix_hash(const Group& group,
                            const SampleState& sample,
                            std::int32_t position) const {
    std::uint64_t hash = weights_;
    for (std::int32_t p = 0; p <= position; ++p) {
      hash = core::derive_seed(hash, static_cast<std::uint64_t>(group.token_at(sample, p)));
    }
    return hash;
  }
  std::uint64_t& slot(const SampleState& sample, std::int32_t position) {
    const auto block = static_cast<std::size_t>(position / kBlockTokens);
    EXPECT_LT(block, sample.blocks.size());
    return slots_[static_cast<std::size_t>(sample.blocks[block] * kBlockTokens +
                                           position % kBlockTokens)];
  }
  void write(const Slice& slice) {
    const SampleState& sample = slice.group->at(slice.sample);
    EXPECT_EQ(sample.status, SampleStatus::kRunning);
    EXPECT_GT(slice.count, 0);
    EXPECT_EQ(slice.draws, slice.first + slice.count == slice.group->length(sample));
    for (std::int32_t p = slice.first; p < slice.first + slice.count; ++p) {
      slot(sample, p) = prefix_hash(*slice.group, sample, p);
    }
  }
  void check(const Slice& slice) {
    const SampleState& sample = slice.group->at(slice.sample);
    for (std::int32_t p = 0; p < slice.first + slice.count; ++p) {
      ASSERT_EQ(slot(sample, p), prefix_hash(*slice.group, sample, p))
          << "group " << slice.group->request.id.value << " sample " << slice.sample << " position "
          << p;
    }
  }
  void draw(Group& group, std::int32_t index, core::Rng& rng, double finish_chance) {
    SampleState& sample = group.at(index);
    sample.out.tokens.push_back(static_cast<std::int32_t>(rng.next_below(1000)));
    const bool full = static_cast<std::int32_t>(sample.out.tokens.size()) ==
                      group.request.sampling.max_new_tokens;
    if (!full && rng.next_uniform() > finish_chance) return;
    scheduler_.finish(group, index);
    ++finished_;
  }

  Scheduler& scheduler_;
  std::vector<std::uint64_t> slots_;
  const std::int32_t budget_;
  std::uint64_t weights_ = 1;
  std::int64_t finished_ = 0;
  std::vector<Event> log_;
};

TEST(Scheduler, ComputesAGroupsPromptOnce) {
  Scheduler scheduler(64, 8, 64);
  ShadowKv kv(scheduler, 64, 64);
  scheduler.submit(make_group(1, 40, 4, 3));
  core::Rng rng(1);
  ASSERT_TRUE(kv.step(rng, 0.0));
  EXPECT_EQ(kv.log(), (std::vector<Event>{{1, 0, 0, 40, true}}));
  // Two full blocks shared, one tail block for each sample.
  EXPECT_EQ(scheduler.pool().free_count(), 64 - 2 - 4);
  ASSERT_TRUE(kv.step(rng, 0.0));
  EXPECT_EQ(kv.log().size(), 5u);
  EXPECT_EQ(kv.log()[4], (Event{1, 3, 40, 1, true}));
}

TEST(Scheduler, ComputesFullPromptBlocksOnceAgainAfterNewWeights) {
  Scheduler scheduler(64, 8, 64);
  ShadowKv kv(scheduler, 64, 64);
  core::Rng rng(1);
  scheduler.submit(make_group(1, 40, 3, 5));
  ASSERT_TRUE(kv.step(rng, 0.0));
  kv.new_weights();
  ASSERT_TRUE(kv.step(rng, 0.0));
  const std::vector<Event> expected = {
      {1, 0, 0, 40, true}, {1, 0, 0, 41, true}, {1, 1, 32, 9, true}, {1, 2, 32, 9, true}};
  EXPECT_EQ(kv.log(), expected);
}

TEST(Scheduler, PreemptedSampleComesBackOnBlocksOfItsGroup) {
  Scheduler scheduler(8, 4, 64);
  ShadowKv kv(scheduler, 8, 64);
  core::Rng rng(1);
  scheduler.submit(make_group(1, 16, 1, 20));
  scheduler.submit(make_group(2, 33, 2, 40));
  while (kv.step(rng, 0.0)) {
  }
  EXPECT_EQ(scheduler.preempted(), 1u);
  EXPECT_EQ(kv.finished(), 3);
  std::vector<Event> chunks;  // what was computed beside prompts and newest tokens
  for (const Event& event : kv.log()) {
    if (std::get<2>(event) > 0 && std::get<3>(event) > 1) chunks.push_back(event);
  }
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(std::get<0>(chunks[0]), 2u);
  EXPECT_EQ(std::get<1>(chunks[0]), 1);
  EXPECT_EQ(std::get<2>(chunks[0]), 32);
}

TEST(Scheduler, PutsDecodeRowsBeforeChunks) {
  Scheduler scheduler(64, 8, 20);
  ShadowKv kv(scheduler, 64, 20);
  core::Rng rng(1);
  scheduler.submit(make_group(1, 10, 2, 30));
  ASSERT_TRUE(kv.step(rng, 0.0));
  scheduler.submit(make_group(2, 50, 1, 5));
  ASSERT_TRUE(kv.step(rng, 0.0));
  ASSERT_TRUE(kv.step(rng, 0.0));
  const std::vector<Event> expected = {
      {1, 0, 0, 10, true}, {1, 0, 10, 1, true}, {1, 1, 10, 1, true},  {2, 0, 0, 18, false},
      {1, 0, 11, 1, true}, {1, 1, 11, 1, true}, {2, 0, 18, 18, false}};
  EXPECT_EQ(kv.log(), expected);
}

TEST(Scheduler, PreemptsTheYoungestAndBringsItBack) {
  Scheduler scheduler(4, 4, 64);
  ShadowKv kv(scheduler, 4, 64);
  core::Rng rng(1);
  scheduler.submit(make_group(1, 16, 1, 40));
  scheduler.submit(make_group(2, 8, 1, 40));
  while (scheduler.preempted() == 0)
    ASSERT_TRUE(kv.step(rng, 0.0));
  EXPECT_EQ(scheduler.find({2})->at(0).status, SampleStatus::kPreempted);
  EXPECT_EQ(scheduler.find({1})->at(0).status, SampleStatus::kRunning);
  EXPECT_FALSE(scheduler.find({2})->at(0).out.tokens.empty());
  while (kv.step(rng, 0.0)) {
  }
  EXPECT_EQ(kv.finished(), 2);
  EXPECT_EQ(scheduler.pool().free_count(), 4);
}

TEST(Scheduler, GivesEveryDecodeRowItsTurnWhenTheBudgetIsSmall) {
  Scheduler scheduler(64, 8, 3);
  ShadowKv kv(scheduler, 64, 3);
  core::Rng rng(1);
  scheduler.submit(make_group(1, 3, 7, 10));
  for (int i = 0; i < 15; ++i)
    ASSERT_TRUE(kv.step(rng, 0.0));
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

TEST(Scheduler, RemoveFreesWhateverTheStateOfTheGroup) {
  Scheduler scheduler(6, 4, 64);
  ShadowKv kv(scheduler, 6, 64);
  core::Rng rng(3);
  for (std::uint64_t id = 1; id <= 4; ++id)
    scheduler.submit(make_group(id, 20, 2, 30));
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(kv.step(rng, 0.0));
  for (std::uint64_t id = 4; id >= 1; --id)
    ASSERT_NE(scheduler.remove({id}), nullptr);
  EXPECT_EQ(scheduler.remove({1}), nullptr);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.running(), 0);
  EXPECT_EQ(scheduler.pool().free_count(), 6);
}

struct SoakResult {
  std::vector<Event> log;
  std::uint64_t preempted = 0;
};

SoakResult soak(std::uint64_t seed) {
  core::Rng rng(seed);
  const auto blocks = static_cast<std::int32_t>(6 + rng.next_below(30));
  const auto running_max = static_cast<std::int32_t>(1 + rng.next_below(12));
  const auto budget = static_cast<std::int32_t>(1 + rng.next_below(60));
  Scheduler scheduler(blocks, running_max, budget);
  ShadowKv kv(scheduler, blocks, budget);
  const double finish_chance = rng.next_uniform() * 0.2;
  std::int64_t wanted = 0;
  std::uint64_t next_id = 1;
  for (int event = 0; event < 150 && !testing::Test::HasFailure(); ++event) {
    const auto kind = rng.next_below(20);
    const auto prompt = static_cast<std::int32_t>(1 + rng.next_below(50));
    const auto most = static_cast<std::uint64_t>(std::min(running_max, blocks - prompt / 16));
    if (kind < 4 && most > 0) {
      const auto samples = static_cast<std::int32_t>(1 + rng.next_below(most));
      const auto max_new = static_cast<std::int32_t>(1 + rng.next_below(46));
      if (blocks_for(prompt + max_new - 1) > blocks) continue;
      scheduler.submit(make_group(next_id++, prompt, samples, max_new));
      wanted += samples;
    } else if (kind == 4) {
      kv.new_weights();
    } else if (kind == 5) {
      const auto removed = scheduler.remove({1 + rng.next_below(next_id)});
      if (removed == nullptr) continue;
      wanted -= removed->request.samples - removed->count(SampleStatus::kFinished);
    } else {
      (void)kv.step(rng, finish_chance);
    }
  }
  int steps = 0;
  while (kv.step(rng, finish_chance) && !testing::Test::HasFailure()) {
    EXPECT_LT(++steps, 100000) << "no end";
    if (steps >= 100000) break;
  }
  EXPECT_EQ(kv.finished(), wanted);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.running(), 0);
  EXPECT_EQ(scheduler.pool().free_count(), blocks);
  return {kv.log(), scheduler.preempted()};
}

TEST(Scheduler, EveryRowSeesItsOwnPrefixUnderRandomEvents) {
  std::uint64_t preempted = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    preempted += soak(seed).preempted;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(preempted, 200u);
}

TEST(Scheduler, SameEventsMakeTheSameDecisions) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(soak(seed).log, soak(seed).log);
}

}  // namespace
}  // namespace troupe::engine
