// Control calls: pauses in their three modes, sleep and wake with what they give back, every wrong
// order refused.
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace troupe::engine {
namespace {

using core::ErrorCode;

constexpr SleepParts kWeights{true, false}, kKv{false, true}, kBoth{true, true};

// Memory of this process that is in use, in bytes.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

class EngineControl : public testing::Test {
 protected:
  std::unique_ptr<Engine> engine(std::int64_t blocks = 60) {
    return make_engine(weights_, limits_of(8, 64, blocks), team_);
  }
  void run_until_drawn(Engine& e, std::uint64_t tokens, Samples& into) {
    while (e.counters().decode_tokens < tokens)
      step_into(e, into);
  }
  void finish(Engine& e, Samples& into) {
    while (!e.idle() && !HasFatalFailure())
      step_into(e, into);
  }
  ErrorCode code(const core::Result<void>& result) {
    return result ? ErrorCode::kInternal : result.error().code;
  }
  template <class T>
  ErrorCode code(const core::Result<T>& result) {
    return result ? ErrorCode::kInternal : result.error().code;
  }

  const std::vector<GroupRequest> requests_ = varied_requests(3, 12);
  Weights weights_ = tiny_weights(1, 4);
  core::SerialTeam team_;
};

TEST_F(EngineControl, PausedEnginesComputeNothingAndTakeGroups) {
  for (const PauseMode mode : {PauseMode::kKeep, PauseMode::kRecompute}) {
    SCOPED_TRACE(static_cast<int>(mode));
    auto e = engine();
    Samples samples;
    for (std::size_t i = 0; i < 6; ++i)
      ASSERT_TRUE(e->submit(requests_[i]));
    run_until_drawn(*e, 30, samples);
    EXPECT_TRUE(e->pause(mode).empty());
    EXPECT_TRUE(e->state().paused);
    const EngineCounters before = e->counters();
    EXPECT_EQ(before.running_sequences == 0, mode == PauseMode::kRecompute);
    for (std::size_t i = 6; i < requests_.size(); ++i)
      ASSERT_TRUE(e->submit(requests_[i]));
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(e->step()->empty());
    EXPECT_EQ(e->counters().steps, before.steps);
    EXPECT_FALSE(e->idle());
    ASSERT_TRUE(e->resume());
    finish(*e, samples);
    expect_same(samples, naive_all(*weights_, requests_));
    EXPECT_EQ(e->counters().free_blocks, 60);
  }
}

TEST_F(EngineControl, PauseByAbortReturnsEverySampleOnce) {
  auto e = engine(12);
  Samples samples;
  for (const GroupRequest& request : requests_)
    ASSERT_TRUE(e->submit(request));
  while (e->counters().preempted == 0)
    step_into(*e, samples);
  auto ended = e->pause(PauseMode::kAbort);
  EXPECT_TRUE(std::is_sorted(ended.begin(), ended.end(), [](const Sample& a, const Sample& b) {
    return std::pair(a.group.value, a.index) < std::pair(b.group.value, b.index);
  }));
  std::size_t partial = 0;
  for (const Sample& sample : ended) {
    EXPECT_EQ(sample.finish, FinishReason::kAborted);
    partial += sample.tokens.empty() ? 0 : 1;
  }
  EXPECT_GT(partial, 0u);
  collect(samples, std::move(ended));
  const Samples whole = naive_all(*weights_, requests_);
  ASSERT_EQ(samples.size(), whole.size());
  for (const auto& [key, sample] : samples) {
    const auto& full = whole.at(key).tokens;
    ASSERT_LE(sample.tokens.size(), full.size());
    EXPECT_TRUE(std::equal(sample.tokens.begin(), sample.tokens.end(), full.begin()));
  }
  EXPECT_TRUE(e->idle());
  EXPECT_EQ(e->counters().free_blocks, 12);
  EXPECT_TRUE(e->pause(PauseMode::kAbort).empty());
}

TEST_F(EngineControl, SleepingSamplesGoOnWhereTheyWere) {
  for (const SleepParts parts : {kKv, kWeights, kBoth}) {
    SCOPED_TRACE(testing::Message() << parts.weights << parts.kv);
    auto e = engine();
    Samples samples;
    for (const GroupRequest& request : requests_)
      ASSERT_TRUE(e->submit(request));
    run_until_drawn(*e, 40, samples);
    const auto asleep = e->sleep(parts);
    ASSERT_TRUE(asleep);
    EXPECT_EQ(asleep->weights.before, weights_->bytes());
    EXPECT_EQ(asleep->weights.after, parts.weights ? 0u : weights_->bytes());
    EXPECT_EQ(asleep->weights_held_elsewhere, parts.weights);
    // [2 layers][k, v][60 blocks][16 tokens][20 wide] floats
    EXPECT_EQ(asleep->kv.before, 2u * 2 * 60 * 16 * 20 * 4);
    EXPECT_EQ(asleep->kv.after, parts.kv ? 0u : asleep->kv.before);
    EXPECT_EQ(code(e->step()), ErrorCode::kClosed);
    EXPECT_EQ(code(e->submit(requests_[0])), ErrorCode::kClosed);
    if (parts.weights) {
      const auto awake = e->wake(kWeights);
      ASSERT_TRUE(awake);
      EXPECT_EQ(awake->weights.after, 0u) << "they are awaited";
      EXPECT_EQ(code(e->step()), ErrorCode::kClosed);
      ASSERT_TRUE(e->set_weights(weights_, KvAction::kRecompute));
    }
    if (parts.kv) {
      const auto awake = e->wake(kKv);
      ASSERT_TRUE(awake);
      EXPECT_EQ(awake->kv.before, 0u);
      EXPECT_EQ(awake->kv.after, asleep->kv.before);
    }
    EXPECT_TRUE(e->state().awake());
    finish(*e, samples);
    expect_same(samples, naive_all(*weights_, requests_));
  }
}

TEST_F(EngineControl, SleepGivesTheMemoryOfTheBlocksBackToTheSystem) {
  auto e = engine(20000);  // 102 MB
  Samples samples;
  core::Rng rng(1);
  // Prompts of their own, so that the blocks are touched.
  for (std::uint64_t id = 1; id <= 300; ++id)
    ASSERT_TRUE(e->submit(request_of(id, random_prompt(rng, 300), 1, 1)));
  finish(*e, samples);
  const std::uint64_t before = resident_bytes();
  const auto report = e->sleep(kKv);
  ASSERT_TRUE(report);
  const std::uint64_t after = resident_bytes();
  // 300 prompts of 18 full blocks, 5 KiB each: 27 MB were touched.
  EXPECT_GT(before, after + (20u << 20));
  EXPECT_EQ(report->kv.before, 20000u * 2 * 2 * 16 * 20 * 4);
  ASSERT_TRUE(e->wake(kKv));
  expect_same(run_all(*e, {requests_[0]}), naive_all(*weights_, {requests_[0]}));
}

TEST_F(EngineControl, SleepLetsGoOfTheWeights) {
  Weights own = tiny_weights(1, 4);
  const std::weak_ptr<const model::PackedWeights> watch = own;
  auto e = make_engine(std::move(own), limits_of(8, 64, 60), team_);
  const auto report = e->sleep(kWeights);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->weights_held_elsewhere);
  EXPECT_TRUE(watch.expired());
}

TEST_F(EngineControl, WokenWithOtherWeightsItIsAFreshEngine) {
  auto e = engine();
  Samples samples;
  (void)run_all(*e, {requests_[0], requests_[1]});
  ASSERT_TRUE(e->sleep(kBoth));
  ASSERT_TRUE(e->wake(kWeights));
  const Weights next = tiny_weights(2, 5);
  ASSERT_TRUE(e->set_weights(next, KvAction::kKeep));
  ASSERT_TRUE(e->wake(kKv));
  expect_same(run_all(*e, requests_), naive_all(*next, requests_));
}

TEST_F(EngineControl, RefusesWrongOrdersAndStaysAsItWas) {
  auto e = engine();
  const ErrorCode wrong = ErrorCode::kInvalidArgument;
  EXPECT_EQ(code(e->resume()), wrong);
  EXPECT_EQ(code(e->sleep({})), wrong);
  EXPECT_EQ(code(e->wake({})), wrong);
  EXPECT_EQ(code(e->wake(kWeights)), wrong);
  EXPECT_EQ(code(e->wake(kKv)), wrong);
  ASSERT_TRUE(e->sleep(kWeights));
  EXPECT_EQ(code(e->sleep(kWeights)), wrong);
  EXPECT_EQ(code(e->sleep(kBoth)), wrong);
  EXPECT_EQ(code(e->set_weights(weights_, KvAction::kRecompute)), ErrorCode::kClosed);
  ASSERT_TRUE(e->sleep(kKv)) << "one after the other";
  EXPECT_EQ(code(e->sleep(kKv)), wrong);
  EXPECT_EQ(code(e->wake(kBoth)), wrong) << "weights first";
  EXPECT_EQ(code(e->wake(kKv)), wrong) << "weights first";
  ASSERT_TRUE(e->wake(kWeights));
  EXPECT_EQ(e->state().weights, WeightsState::kAwaited);
  EXPECT_EQ(code(e->wake(kWeights)), wrong);
  EXPECT_EQ(code(e->sleep(kWeights)), wrong);
  EXPECT_EQ(code(e->wake(kKv)), wrong) << "weights are set first";
  model::ModelSpec small = tiny_spec();
  small.vocab = 512;
  model::ParamStore params(small);
  model::randomise(params, 1, 0.25f);
  EXPECT_EQ(code(e->set_weights(pack(params, 9), KvAction::kRecompute)), ErrorCode::kData);
  ASSERT_TRUE(e->set_weights(weights_, KvAction::kRecompute));
  EXPECT_EQ(code(e->step()), ErrorCode::kClosed) << "no blocks yet";
  ASSERT_TRUE(e->wake(kKv));
  expect_same(run_all(*e, requests_), naive_all(*weights_, requests_));
}

TEST_F(EngineControl, AbortWorksWhileAsleepAndPausesOutlastSleep) {
  auto e = engine();
  Samples samples;
  ASSERT_TRUE(e->submit(requests_[0]));
  ASSERT_TRUE(e->submit(requests_[1]));
  step_into(*e, samples);
  e->pause(PauseMode::kKeep);
  ASSERT_TRUE(e->sleep(kKv));
  EXPECT_EQ(e->abort(requests_[0].id).size() + samples.size(),
            static_cast<std::size_t>(requests_[0].samples));
  EXPECT_TRUE(e->abort(requests_[0].id).empty());
  ASSERT_TRUE(e->wake(kKv));
  EXPECT_TRUE(e->step()->empty()) << "still paused";
  ASSERT_TRUE(e->resume());
  std::erase_if(samples, [](const auto& one) { return one.first.first == 1; });
  finish(*e, samples);
  expect_same(samples, naive_all(*weights_, {requests_[1]}));
}

}  // namespace
}  // namespace troupe::engine
