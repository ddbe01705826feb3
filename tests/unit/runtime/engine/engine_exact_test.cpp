// The promise of the engine: a sample's tokens and log-probs have the same bits
// whatever else is in the batch, however prompts are cut, whoever is preempted, on any number of
// threads. Everything is compared with the naive generator of tiny_engine.hpp.
#include "runtime/async/cpu_pool.hpp"
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::engine {
namespace {

constexpr std::int32_t kEos = 5;

class EngineExact : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    weights_ = new Weights(tiny_weights());
    requests_ = new std::vector<GroupRequest>(varied_requests(1, 30));
    expected_ = new Samples(naive_all(**weights_, *requests_, {kEos}));
  }
  static void TearDownTestSuite() {
    delete weights_;
    delete requests_;
    delete expected_;
  }

  void expect_exact(EngineLimits limits,
                    core::TeamRunner& team,
                    const std::vector<GroupRequest>& requests,
                    std::uint64_t* preempted = nullptr) {
    auto engine = make_engine(*weights_, limits, team, {kEos});
    expect_same(run_all(*engine, requests), *expected_);
    EXPECT_EQ(engine->counters().free_blocks, engine->counters().total_blocks);
    if (preempted != nullptr) *preempted += engine->counters().preempted;
  }
  void expect_exact(EngineLimits limits) {
    core::SerialTeam serial;
    expect_exact(limits, serial, *requests_);
  }

  static Weights* weights_;
  static std::vector<GroupRequest>* requests_;
  static Samples* expected_;
};

Weights* EngineExact::weights_ = nullptr;
std::vector<GroupRequest>* EngineExact::requests_ = nullptr;
Samples* EngineExact::expected_ = nullptr;

TEST_F(EngineExact, OneGroupAtATime) {
  core::SerialTeam serial;
  auto engine = make_engine(*weights_, limits_of(8, 512, 64), serial, {kEos});
  Samples samples;
  for (const GroupRequest& request : *requests_)
    samples.merge(run_all(*engine, {request}));
  expect_same(samples, *expected_);
}

TEST_F(EngineExact, AllInOneBatch) {
  expect_exact(limits_of(64, 4096, 600));
}

TEST_F(EngineExact, AnyStepSize) {
  for (const std::int32_t rows : {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 100, 512}) {
    SCOPED_TRACE(rows);
    expect_exact(limits_of(64, rows, 600));
  }
}

TEST_F(EngineExact, AnyNumberOfRunningSequences) {
  for (const std::int32_t running : {3, 4, 7, 16, 33}) {
    SCOPED_TRACE(running);
    expect_exact(limits_of(running, 48, 600));
  }
}

TEST_F(EngineExact, TwoThreads) {
  async::CpuPool pool(2);
  for (const std::int32_t rows : {1, 7, 64, 512}) {
    SCOPED_TRACE(rows);
    expect_exact(limits_of(64, rows, 600), pool, *requests_);
  }
}

TEST_F(EngineExact, MoreHeadRowsThanOneBatchOfLogits) {
  const std::vector<GroupRequest> requests = varied_requests(7, 150, 1, 20);
  const Samples expected = naive_all(**weights_, requests);
  core::SerialTeam serial;
  async::CpuPool pool(2);
  for (core::TeamRunner* team :
       {static_cast<core::TeamRunner*>(&serial), static_cast<core::TeamRunner*>(&pool)}) {
    auto engine = make_engine(*weights_, limits_of(160, 4096, 900), *team);
    expect_same(run_all(*engine, requests), expected);
  }
}

TEST_F(EngineExact, AnyOrderOfArrival) {
  core::SerialTeam serial;
  std::vector<GroupRequest> requests = *requests_;
  std::reverse(requests.begin(), requests.end());
  expect_exact(limits_of(24, 64, 600), serial, requests);
  core::Rng rng(9);
  for (std::size_t i = requests.size(); i > 1; --i) {
    std::swap(requests[i - 1], requests[rng.next_below(i)]);
  }
  expect_exact(limits_of(24, 64, 600), serial, requests);
}

TEST_F(EngineExact, FewBlocksAndPreemption) {
  core::SerialTeam serial;
  std::uint64_t preempted = 0;
  for (const std::int64_t blocks : {6, 7, 9, 12, 20, 40}) {
    SCOPED_TRACE(blocks);
    expect_exact(limits_of(64, 96, blocks), serial, *requests_, &preempted);
  }
  EXPECT_GT(preempted, 20u);
}

TEST_F(EngineExact, RequestsThatComeWhileOthersRun) {
  core::SerialTeam serial;
  auto engine = make_engine(*weights_, limits_of(16, 40, 30), serial, {kEos});
  Samples samples;
  for (const GroupRequest& request : *requests_) {
    ASSERT_TRUE(engine->submit(request));
    for (std::uint64_t i = 0; i < request.id.value % 4; ++i)
      step_into(*engine, samples);
  }
  while (!engine->idle())
    step_into(*engine, samples);
  expect_same(samples, *expected_);
}

TEST_F(EngineExact, SamplesOfALargeGroupStartWithThoseOfASmallOne) {
  core::SerialTeam serial;
  core::Rng rng(4);
  GroupRequest small = request_of(1, random_prompt(rng, 37), 2, 20);
  GroupRequest large = small;
  large.samples = 9;
  auto engine = make_engine(*weights_, limits_of(16, 64, 60), serial);
  const Samples few = run_all(*engine, {small});
  Samples many = run_all(*engine, {large});
  EXPECT_NE(many.at({1, 0}).tokens, many.at({1, 8}).tokens);
  std::erase_if(many, [](const auto& entry) { return entry.first.second >= 2; });
  expect_same(few, many);
}

TEST_F(EngineExact, SeedsAndNothingElseTellSamplesApart) {
  core::SerialTeam serial;
  core::Rng rng(4);
  GroupRequest one = request_of(1, random_prompt(rng, 20), 2, 12);
  GroupRequest same = one;
  same.id.value = 2;
  GroupRequest other = one;
  other.id.value = 3;
  other.seed += 1;
  auto engine = make_engine(*weights_, limits_of(16, 64, 60), serial);
  const Samples samples = run_all(*engine, {one, same, other});
  EXPECT_EQ(samples.at({1, 0}).tokens, samples.at({2, 0}).tokens);
  EXPECT_NE(samples.at({1, 0}).tokens, samples.at({3, 0}).tokens);
  EXPECT_NE(samples.at({1, 0}).tokens, samples.at({1, 1}).tokens);
}

// Random limits, random moments of arrival, random aborts: what is not aborted equals the naive
// generator, what is aborted is a front part of it.
TEST_F(EngineExact, Soak) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    core::Rng rng(seed, 3);
    core::SerialTeam serial;
    const EngineLimits limits = limits_of(static_cast<std::int32_t>(3 + rng.next_below(30)),
                                          static_cast<std::int32_t>(1 + rng.next_below(90)),
                                          static_cast<std::int64_t>(6 + rng.next_below(40)));
    auto engine = make_engine(*weights_, limits, serial, {kEos});
    Samples samples, aborted;
    std::size_t next = 0;
    while (next < requests_->size() || !engine->idle()) {
      const auto kind = rng.next_below(12);
      if (kind < 4 && next < requests_->size()) {
        ASSERT_TRUE(engine->submit((*requests_)[next++]));
      } else if (kind == 4) {
        collect(aborted, engine->abort({1 + rng.next_below(30)}));
      } else {
        step_into(*engine, samples);
      }
    }
    ASSERT_EQ(samples.size() + aborted.size(), expected_->size());
    Samples rest = *expected_;
    for (const auto& [key, sample] : aborted) {
      ASSERT_EQ(sample.finish, FinishReason::kAborted);
      const std::vector<std::int32_t>& whole = rest.at(key).tokens;
      ASSERT_LT(sample.tokens.size(), whole.size());
      ASSERT_TRUE(std::equal(sample.tokens.begin(), sample.tokens.end(), whole.begin()));
      rest.erase(key);
    }
    expect_same(samples, rest);
    ASSERT_EQ(engine->counters().free_blocks, limits.kv_blocks);
  }
}

}  // namespace
}  // namespace troupe::engine
