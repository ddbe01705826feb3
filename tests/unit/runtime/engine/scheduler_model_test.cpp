// The scheduler, its pool and its prefix index against a naive model under random events: groups
// with common prefixes come and are cut off, weights are swapped in both ways, everything is set
// back, the memory goes away and comes back.
#include "tests/unit/runtime/engine/shadow_kv.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

struct Campaign {
  std::vector<Event> log;
  std::uint64_t preempted = 0, hits = 0, evicted = 0;
  std::int64_t computed = 0, given_back = 0;
};

// Prompts of three families that share long beginnings, and continuations of what was said.
class Prompts {
 public:
  explicit Prompts(core::Rng& rng) : rng_(rng) {}

  std::vector<std::int32_t> next(const Drawn& drawn) {
    const auto length = 1 + rng_.next_below(50);
    const std::uint64_t family = rng_.next_below(3);
    if (!drawn.empty() && rng_.next_below(4) == 0) {
      auto at = drawn.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(rng_.next_below(drawn.size())));
      std::vector<std::int32_t> turn = of_[at->first.first];
      turn.insert(turn.end(), at->second.begin(), at->second.end());
      turn.push_back(7);
      if (turn.size() <= 64) return turn;
    }
    std::vector<std::int32_t> prompt;
    const auto common = rng_.next_below(length + 1);
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t own = i < common ? 0 : rng_.next_below(3);
      prompt.push_back(static_cast<std::int32_t>((family * 100 + i + own) % kShadowVocab));
    }
    return prompt;
  }
  void remember(std::uint64_t id, const std::vector<std::int32_t>& prompt) { of_[id] = prompt; }

 private:
  core::Rng& rng_;
  std::map<std::uint64_t, std::vector<std::int32_t>> of_;
};

Drawn naive(const std::vector<GroupRequest>& requests, double finish_chance) {
  Drawn all;
  for (const GroupRequest& request : requests) {
    for (std::int32_t i = 0; i < request.samples; ++i) {
      const std::uint64_t seed = core::derive_seed(request.id.value, static_cast<std::uint64_t>(i));
      std::uint64_t prefix = 0;
      for (const std::int32_t token : request.prompt)
        prefix = ShadowKv::extended(prefix, token);
      auto& tokens = all[{request.id.value, i}];
      do {
        tokens.push_back(ShadowKv::naive_token(prefix, seed));
        prefix = ShadowKv::extended(prefix, tokens.back());
      } while (static_cast<std::int32_t>(tokens.size()) < request.sampling.max_new_tokens &&
               core::uniform(seed, 9, tokens.size()) > finish_chance);
    }
  }
  return all;
}

// `windowed`: a model that looks back on 1 to 40 tokens, responses several times that long, and
// pools that a whole one often does not fit into.
Campaign campaign(std::uint64_t seed,
                  bool prefix_cache = true,
                  bool windowed = false,
                  std::uint64_t owners = 0) {
  core::Rng rng(seed);
  core::Rng sizes(seed + (1u << 20)), urgency(seed + (1u << 21));
  const std::uint64_t priorities = 1 + urgency.next_below(2) * 2;  // 1: all are equal
  const auto blocks =
      static_cast<std::int32_t>(windowed ? 3 + sizes.next_below(14) : 6 + rng.next_below(30));
  const auto running_max = static_cast<std::int32_t>(1 + rng.next_below(12));
  const auto budget = static_cast<std::int32_t>(1 + rng.next_below(60));
  const KvWindow window{windowed ? static_cast<std::int32_t>(1 + sizes.next_below(40)) : 0, budget};
  Scheduler scheduler(blocks, running_max, budget, prefix_cache, window.tokens);
  ShadowKv kv(scheduler, blocks, budget, window.tokens);
  const double finish_chance = rng.next_uniform() * (windowed ? 0.05 : 0.2);
  Prompts prompts(rng);
  std::vector<GroupRequest> submitted;
  std::int64_t wanted = 0, tokens = 0;
  std::uint64_t next_id = 1;
  for (int event = 0; event < 120 && !testing::Test::HasFailure(); ++event) {
    const auto kind = rng.next_below(24);
    if (kind < 5) {
      const std::vector<std::int32_t> prompt = prompts.next(kv.drawn());
      const auto size = static_cast<std::int32_t>(prompt.size());
      const auto most = static_cast<std::int64_t>(std::min(running_max, blocks - size / 16));
      if (most < 1) continue;
      const auto samples =
          static_cast<std::int32_t>(1 + rng.next_below(static_cast<std::uint64_t>(most)));
      const auto max_new = static_cast<std::int32_t>(1 + (windowed     ? sizes.next_below(100)
                                                          : owners > 0 ? sizes.next_below(300)
                                                                       : rng.next_below(46)));
      if (blocks_wanted(size, samples, max_new, window) > blocks) continue;
      auto group = make_group(next_id, prompt, samples, max_new);
      group->request.cache_salt = rng.next_below(8) == 0 ? 1 : 0;
      group->request.priority = static_cast<std::int32_t>(urgency.next_below(priorities));
      if (owners > 0)
        group->request.owner = static_cast<std::uint32_t>(1 + sizes.next_below(owners));
      submitted.push_back(group->request);
      prompts.remember(next_id++, prompt);
      wanted += samples;
      tokens += std::int64_t{samples} * (size + max_new);
      kv.submit(std::move(group));
    } else if (kind == 5) {
      kv.new_weights(rng.next_below(2) == 0 ? KvAction::kRecompute : KvAction::kKeep);
    } else if (kind == 6) {
      const auto removed = kv.remove(1 + rng.next_below(next_id));
      if (removed == nullptr) continue;
      wanted -= removed->request.samples - removed->count(SampleStatus::kFinished);
      std::erase_if(submitted,
                    [&](const GroupRequest& one) { return one.id == removed->request.id; });
    } else if (kind == 7) {
      scheduler.release_all();
    } else if (kind == 8 && rng.next_below(3) == 0) {
      kv.lose_memory();
    } else {
      (void)kv.step(finish_chance);
    }
    kv.check_books();
  }
  // Every step computes at least one row, so no sample waits for ever.
  std::int64_t steps = 0;
  while (!testing::Test::HasFailure() && kv.step(finish_chance)) {
    kv.check_books();
    EXPECT_LT(++steps, 20 * tokens + 100) << "no end";
    if (steps >= 20 * tokens + 100) break;
  }
  EXPECT_EQ(kv.finished(), wanted);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.running(), 0);
  EXPECT_EQ(scheduler.tables().pool().free_count(), blocks);
  for (const auto& [key, tokens_of] : naive(submitted, finish_chance)) {
    const auto at = kv.drawn().find(key);
    if (at == kv.drawn().end()) {
      ADD_FAILURE() << "group " << key.first << " sample " << key.second << " never came back";
    } else {
      EXPECT_EQ(at->second, tokens_of);
    }
  }
  return {kv.log(),
          scheduler.preempted(),
          scheduler.tables().prefix_hit_tokens(),
          scheduler.tables().evicted(),
          kv.computed(),
          kv.given_back()};
}

TEST(SchedulerModel, ThousandSeedsOfRandomEvents) {
  Campaign sum;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Campaign one = campaign(seed);
    sum.preempted += one.preempted;
    sum.hits += one.hits;
    sum.evicted += one.evicted;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(sum.preempted, 1000u);
  EXPECT_GT(sum.hits, 20000u);
  EXPECT_GT(sum.evicted, 1000u);
}

TEST(SchedulerModel, ThousandSeedsOfRandomEventsUnderAWindow) {
  Campaign sum;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Campaign one = campaign(seed, seed % 4 != 0, true);
    sum.preempted += one.preempted;
    sum.hits += one.hits;
    sum.evicted += one.evicted;
    sum.given_back += one.given_back;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(sum.preempted, 1000u);
  EXPECT_GT(sum.hits, 20000u);
  EXPECT_GT(sum.evicted, 1000u);
  EXPECT_GT(sum.given_back, 10000);
}

TEST(SchedulerModel, HundredsOfSeedsOfOwnersThatShare) {
  Campaign sum;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Campaign one = campaign(seed, seed % 4 != 0, seed % 3 == 0, 1 + seed % 4);
    sum.preempted += one.preempted;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(sum.preempted, 1000u);
}

TEST(SchedulerModel, TheSameEventsWithoutTheIndex) {
  std::int64_t with = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    with += campaign(seed, true).computed;
    const Campaign plain = campaign(seed, false);
    without += plain.computed;
    EXPECT_EQ(plain.hits, 0u);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_LT(with, without);
}

TEST(SchedulerModel, SameEventsMakeTheSameDecisions) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(campaign(seed).log, campaign(seed).log);
}

}  // namespace
}  // namespace troupe::engine
