// The prefix cache as callers see it: what is found again is not computed again, and nothing but
// the counters can tell.
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::engine {
namespace {

class EnginePrefix : public testing::Test {
 protected:
  std::unique_ptr<Engine> engine(std::int64_t blocks = 200, std::int32_t rows = 512) {
    return make_engine(weights_, limits_of(16, rows, blocks), team_);
  }
  std::vector<std::int32_t> prompt(std::uint64_t length, std::uint64_t seed = 1) {
    core::Rng rng(seed);
    return random_prompt(rng, length);
  }
  // Rows that were computed beside the newest tokens.
  std::uint64_t rows_of(Engine& engine, const GroupRequest& request) {
    const std::uint64_t before = engine.counters().prefill_tokens;
    expect_same(run_all(engine, {request}), naive_all(engine.weights(), {request}));
    return engine.counters().prefill_tokens - before;
  }

  Weights weights_ = tiny_weights();
  core::SerialTeam team_;
};

TEST_F(EnginePrefix, AnEarlierPromptIsNotComputedAgain) {
  auto e = engine();
  EXPECT_EQ(rows_of(*e, request_of(1, prompt(100), 2, 4)), 100u);
  EXPECT_EQ(rows_of(*e, request_of(2, prompt(100), 2, 4)), 4u) << "six full blocks are there";
  EXPECT_EQ(e->counters().prefix_query_tokens, 200u);
  EXPECT_EQ(e->counters().prefix_hit_tokens, 96u);
  EXPECT_EQ(e->counters().cached_blocks, 6);
  EXPECT_EQ(e->counters().free_blocks, 200) << "what is cached is free";
}

TEST_F(EnginePrefix, TheLastPromptTokenIsAlwaysComputed) {
  auto e = engine();
  EXPECT_EQ(rows_of(*e, request_of(1, prompt(64), 1, 2)), 64u);
  EXPECT_EQ(rows_of(*e, request_of(2, prompt(64), 1, 2)), 16u);
  EXPECT_EQ(rows_of(*e, request_of(3, prompt(65), 1, 2)), 1u);
}

TEST_F(EnginePrefix, HitsEndWhereTheTokensDiffer) {
  auto e = engine();
  (void)rows_of(*e, request_of(1, prompt(100), 1, 2));
  std::vector<std::int32_t> other = prompt(100);
  other[40] = (other[40] + 1) % 1000;
  EXPECT_EQ(rows_of(*e, request_of(2, other, 1, 2)), 68u) << "two blocks before position 40";
  other = prompt(100);
  other[0] = (other[0] + 1) % 1000;
  EXPECT_EQ(rows_of(*e, request_of(3, other, 1, 2)), 100u);
}

TEST_F(EnginePrefix, TheNextTurnFindsTheAnswerToo) {
  auto e = engine();
  GroupRequest first = request_of(1, prompt(20), 1, 40);
  const Sample answer = run_all(*e, {first}).at({1, 0});
  GroupRequest second = request_of(2, first.prompt, 3, 4);
  second.prompt.insert(second.prompt.end(), answer.tokens.begin(), answer.tokens.end());
  for (int i = 0; i < 10; ++i)
    second.prompt.push_back(i);
  // 59 positions of the first turn were computed: 48 of them in full blocks.
  EXPECT_EQ(rows_of(*e, second), 70u - 48u);
}

TEST_F(EnginePrefix, TwoGroupsTogetherBothComputeAndAThirdFinds) {
  auto e = engine();
  const std::vector<GroupRequest> both = {request_of(1, prompt(50), 2, 3),
                                          request_of(2, prompt(50), 2, 3)};
  expect_same(run_all(*e, both), naive_all(*weights_, both));
  EXPECT_EQ(e->counters().prefill_tokens, 100u);
  EXPECT_EQ(e->counters().cached_blocks, 3) << "of two equal blocks one is entered";
  EXPECT_EQ(rows_of(*e, request_of(3, prompt(50), 2, 3)), 2u);
}

TEST_F(EnginePrefix, AnotherSaltFindsNothing) {
  auto e = engine();
  (void)rows_of(*e, request_of(1, prompt(50), 1, 2));
  GroupRequest salted = request_of(2, prompt(50), 1, 2);
  salted.cache_salt = 7;
  EXPECT_EQ(rows_of(*e, salted), 50u);
  salted.id.value = 3;
  EXPECT_EQ(rows_of(*e, salted), 2u);
}

TEST_F(EnginePrefix, TurnedOffFindsNothing) {
  EngineLimits limits = limits_of(16, 512, 200);
  limits.enable_prefix_caching = false;
  auto e = make_engine(weights_, limits, team_);
  EXPECT_EQ(rows_of(*e, request_of(1, prompt(50), 1, 2)), 50u);
  EXPECT_EQ(rows_of(*e, request_of(2, prompt(50), 1, 2)), 50u);
  EXPECT_EQ(e->counters().cached_blocks, 0);
  EXPECT_EQ(e->counters().prefix_query_tokens, 0u);
}

TEST_F(EnginePrefix, WhatWasUsedLongestAgoMakesRoom) {
  auto e = engine(8);
  (void)rows_of(*e, request_of(1, prompt(49, 1), 1, 2));  // three blocks cached
  (void)rows_of(*e, request_of(2, prompt(49, 2), 1, 2));  // three more
  EXPECT_EQ(e->counters().cached_blocks, 6);
  EXPECT_EQ(rows_of(*e, request_of(3, prompt(49, 1), 1, 2)), 1u) << "revived, so young again";
  EXPECT_EQ(rows_of(*e, request_of(4, prompt(40, 3), 1, 2)), 40u);  // takes three: two were empty
  EXPECT_EQ(e->counters().evicted, 1u);
  EXPECT_EQ(rows_of(*e, request_of(5, prompt(49, 2), 1, 2)), 17u) << "its tail went first";
}

TEST_F(EnginePrefix, FindsNothingOfOtherWeights) {
  auto e = engine();
  const Weights next = tiny_weights(2, 1);
  (void)rows_of(*e, request_of(1, prompt(100), 1, 4));
  for (const KvAction action : {KvAction::kRecompute, KvAction::kKeep}) {
    SCOPED_TRACE(static_cast<int>(action));
    ASSERT_TRUE(e->set_weights(action == KvAction::kKeep ? weights_ : next, action));
    EXPECT_EQ(e->counters().cached_blocks, 0);
    EXPECT_EQ(rows_of(*e, request_of(2, prompt(100), 1, 4)), 100u);
  }
}

// Weights of the same version number, as after a rollback, are other weights all the same.
TEST_F(EnginePrefix, FindsNothingOfOtherWeightsOfTheSameVersion) {
  auto e = engine();
  (void)rows_of(*e, request_of(1, prompt(100), 1, 4));
  ASSERT_TRUE(e->set_weights(tiny_weights(2, 0), KvAction::kRecompute));
  EXPECT_EQ(rows_of(*e, request_of(2, prompt(100), 1, 4)), 100u);
}

TEST_F(EnginePrefix, BlocksOfMixedVersionsAreNotEntered) {
  auto e = engine(200, 40);
  const Weights next = tiny_weights(2, 1);
  ASSERT_TRUE(e->submit(request_of(1, prompt(100), 1, 40)));
  Samples samples;
  for (int i = 0; i < 6; ++i)
    step_into(*e, samples);
  ASSERT_TRUE(e->set_weights(next, KvAction::kKeep));
  while (!e->idle())
    step_into(*e, samples);
  EXPECT_EQ(samples.at({1, 0}).versions.front(), 0u);
  EXPECT_EQ(samples.at({1, 0}).versions.back(), 1u);
  EXPECT_EQ(e->counters().cached_blocks, 0);
  EXPECT_EQ(rows_of(*e, request_of(2, prompt(100), 1, 4)), 100u);
}

TEST_F(EnginePrefix, WeightsWithoutNumbersLeaveNothingBehind) {
  model::ParamStore params(tiny_spec());
  model::randomise(params, 1, 0.25f);
  std::fill_n(params.data(), 4000, std::numeric_limits<float>::quiet_NaN());
  auto e = engine(200, 40);
  ASSERT_TRUE(e->set_weights(pack(params, 0), KvAction::kRecompute));
  std::vector<std::int32_t> poisoned = prompt(100);
  poisoned[1] = 3;
  ASSERT_TRUE(e->submit(request_of(1, poisoned, 2, 4)));
  core::Result<std::vector<Sample>> step = e->step();
  for (int i = 0; i < 5 && step; ++i)
    step = e->step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, core::ErrorCode::kNumeric);
  ASSERT_TRUE(e->set_weights(weights_, KvAction::kRecompute));
  Samples samples;
  while (!e->idle())
    step_into(*e, samples);
  expect_same(samples, naive_all(*weights_, {request_of(1, poisoned, 2, 4)}));
}

// One prompt computed, whatever the number of samples.
TEST_F(EnginePrefix, AGroupComputesItsPromptOnce) {
  for (const std::int32_t samples : {1, 8}) {
    auto e = engine();
    ASSERT_TRUE(e->submit(request_of(1, prompt(250), samples, 2)));
    Samples done;
    while (e->counters().decode_tokens == 0)
      step_into(*e, done);
    EXPECT_EQ(e->counters().prefill_tokens, 250u);
    EXPECT_EQ(e->counters().decode_tokens, static_cast<std::uint64_t>(samples));
    EXPECT_EQ(e->counters().steps, 1u);
  }
}

}  // namespace
}  // namespace troupe::engine
