// What callers see of an engine: ends of samples, aborts, refusals, new weights, counters.
#include "runtime/engine/engine.hpp"

#include "runtime/engine/limits.hpp"
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::engine {
namespace {

using core::ErrorCode;

class EngineTest : public testing::Test {
 protected:
  std::unique_ptr<Engine> engine(std::vector<std::int32_t> eos = {}) {
    return make_engine(weights_, limits_of(16, 64, 60), team_, std::move(eos), &text_);
  }
  // What the model says without any end, to plan ends from.
  std::vector<std::int32_t> tokens_of(const GroupRequest& request) {
    return naive_sample(*weights_, request, 0).tokens;
  }
  GroupRequest plain(std::uint64_t id = 1, std::int32_t samples = 1, std::int32_t max_new = 16) {
    core::Rng rng(id, 8);
    return request_of(id, random_prompt(rng, 21), samples, max_new);
  }

  Weights weights_ = tiny_weights();
  core::SerialTeam team_;
  NumberText text_;
};

TEST_F(EngineTest, EndsAtMaxNewTokens) {
  auto e = engine();
  const Samples samples = run_all(*e, {plain()});
  EXPECT_EQ(samples.at({1, 0}).tokens.size(), 16u);
  EXPECT_EQ(samples.at({1, 0}).finish, FinishReason::kLength);
}

TEST_F(EngineTest, EndsAtAnEndTokenAndKeepsIt) {
  const std::vector<std::int32_t> whole = tokens_of(plain());
  auto e = engine({whole[5]});
  const Samples samples = run_all(*e, {plain()});
  const auto first = std::find(whole.begin(), whole.end(), whole[5]);
  EXPECT_EQ(samples.at({1, 0}).tokens, std::vector<std::int32_t>(whole.begin(), first + 1));
  EXPECT_EQ(samples.at({1, 0}).finish, FinishReason::kEos);
}

TEST_F(EngineTest, IgnoreEosGoesOn) {
  GroupRequest request = plain();
  request.sampling.ignore_eos = true;
  auto e = engine({tokens_of(request)[5]});
  const Samples samples = run_all(*e, {request});
  EXPECT_EQ(samples.at({1, 0}).tokens.size(), 16u);
}

TEST_F(EngineTest, EndsAtAStopTokenOfTheRequest) {
  GroupRequest request = plain();
  const std::int32_t stop = tokens_of(request)[3];
  request.sampling.stop_tokens = {stop};
  auto e = engine();
  const Samples samples = run_all(*e, {request});
  EXPECT_EQ(samples.at({1, 0}).tokens.back(), stop);
  EXPECT_EQ(samples.at({1, 0}).finish, FinishReason::kStop);
}

TEST_F(EngineTest, EndsAtAStopStringAcrossTokens) {
  GroupRequest request = plain();
  const std::vector<std::int32_t> whole = tokens_of(request);
  const std::string last = std::to_string(whole[7]);
  request.sampling.stop_strings = {std::to_string(whole[6]) + "," + last.substr(0, 1)};
  auto e = engine();
  const Samples samples = run_all(*e, {request});
  EXPECT_EQ(samples.at({1, 0}).tokens, std::vector<std::int32_t>(whole.begin(), whole.begin() + 8));
  EXPECT_EQ(samples.at({1, 0}).finish, FinishReason::kStop);
}

TEST_F(EngineTest, NoEndBeforeMinNewTokens) {
  GroupRequest request = plain(1, 1, 40);
  request.sampling.temperature = 0.0f;
  const std::vector<std::int32_t> whole = tokens_of(request);
  request.sampling.min_new_tokens = 9;
  request.sampling.stop_tokens = {whole[2]};
  request.sampling.stop_strings = {std::to_string(whole[1])};
  auto e = engine({whole[0]});
  const Sample sample = run_all(*e, {request}).at({1, 0});
  ASSERT_GE(sample.tokens.size(), 9u);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_NE(sample.tokens[i], whole[0]);
    EXPECT_NE(sample.tokens[i], whole[2]);
  }
  request.sampling.stop_strings.clear();
  const Samples again = run_all(*e, {request});
  EXPECT_EQ(again.at({1, 0}).tokens, naive_sample(*weights_, request, 0, {whole[0]}).tokens);
}

TEST_F(EngineTest, ReturnsSamplesByGroupAndIndex) {
  auto e = engine();
  for (const std::uint64_t id : {9, 2, 5})
    ASSERT_TRUE(e->submit(plain(id, 3, 1)));
  const auto finished = e->step();
  ASSERT_TRUE(finished);
  std::vector<std::pair<std::uint64_t, std::int32_t>> order;
  for (const Sample& sample : *finished)
    order.emplace_back(sample.group.value, sample.index);
  EXPECT_EQ(order.size(), 9u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(EngineTest, AbortReturnsPartsOfRunningWaitingAndPreemptedSamples) {
  auto e = make_engine(weights_, limits_of(4, 64, 6), team_);
  ASSERT_TRUE(e->submit(plain(1, 1, 60)));
  ASSERT_TRUE(e->submit(plain(2, 2, 60)));
  ASSERT_TRUE(e->submit(plain(3, 4, 60)));
  Samples done;
  while (e->counters().preempted == 0)
    step_into(*e, done);
  EXPECT_TRUE(e->abort({77}).empty());
  const std::vector<Sample> waiting = e->abort({3});
  ASSERT_EQ(waiting.size(), 4u);
  EXPECT_TRUE(waiting[0].tokens.empty());
  const std::vector<Sample> preempted = e->abort({2});
  ASSERT_EQ(preempted.size(), 2u);
  EXPECT_FALSE(preempted[1].tokens.empty());
  EXPECT_EQ(preempted[1].tokens.size(), preempted[1].logprobs.size());
  const std::vector<Sample> running = e->abort({1});
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].finish, FinishReason::kAborted);
  EXPECT_FALSE(running[0].tokens.empty());
  EXPECT_TRUE(e->idle());
  EXPECT_EQ(e->counters().free_blocks, 6);
  EXPECT_EQ(e->counters().aborted, 7u);
  EXPECT_TRUE(e->abort({1}).empty());
}

TEST_F(EngineTest, ThoseThatWaitAreCountedAlsoWhenTheyGaveTheirBlocksBack) {
  auto e = make_engine(weights_, limits_of(4, 64, 6), team_);
  EXPECT_EQ(e->counters().waiting_sequences, 0);
  ASSERT_TRUE(e->submit(plain(1, 1, 60)));
  ASSERT_TRUE(e->submit(plain(2, 2, 60)));
  ASSERT_TRUE(e->submit(plain(3, 4, 60)));  // never beside the others: at most 4 run
  EXPECT_EQ(e->counters().waiting_sequences, 7);
  Samples done;
  step_into(*e, done);
  EXPECT_EQ(e->counters().running_sequences, 3);
  EXPECT_EQ(e->counters().waiting_sequences, 4);
  while (e->counters().preempted == 0)
    step_into(*e, done);
  EXPECT_EQ(e->counters().running_sequences, 2);
  EXPECT_EQ(e->counters().waiting_groups, 1) << "a preempted sample is in no waiting group";
  EXPECT_EQ(e->counters().waiting_sequences, 5);
  e->pause(PauseMode::kRecompute);
  EXPECT_EQ(e->counters().waiting_sequences, 7) << "all gave their blocks back";
  ASSERT_TRUE(e->resume());
  e->abort({3});
  EXPECT_EQ(e->counters().waiting_sequences, 3);
  while (!e->idle()) {
    step_into(*e, done);
    const EngineCounters now = e->counters();
    EXPECT_EQ(now.running_sequences + now.waiting_sequences, 3 - std::ssize(done));
  }
  EXPECT_EQ(e->counters().waiting_sequences, 0);
}

TEST_F(EngineTest, AbortLeavesOutWhatHadFinished) {
  GroupRequest request = plain(1, 6, 30);
  request.sampling.stop_tokens = {naive_sample(*weights_, request, 2).tokens[4]};
  auto e = engine();
  ASSERT_TRUE(e->submit(request));
  Samples done;
  while (done.empty())
    step_into(*e, done);
  const std::vector<Sample> rest = e->abort({1});
  EXPECT_EQ(rest.size() + done.size(), 6u);
  for (const Sample& sample : rest)
    EXPECT_EQ(done.count({1, sample.index}), 0u);
}

TEST_F(EngineTest, RefusalsLeaveTheOthersUnharmed) {
  auto e = engine();
  const GroupRequest good = plain();
  ASSERT_TRUE(e->submit(good));
  Samples samples;
  step_into(*e, samples);
  GroupRequest bad = plain(2);
  bad.prompt.clear();
  EXPECT_EQ(e->submit(bad).error().code, ErrorCode::kInvalidArgument);
  bad.prompt = {1, 99999};
  EXPECT_EQ(e->submit(bad).error().code, ErrorCode::kInvalidArgument);
  bad.prompt.assign(400, 1);
  EXPECT_EQ(e->submit(bad).error().code, ErrorCode::kData);
  bad.prompt.assign(16, 1);
  bad.samples = 17;
  EXPECT_EQ(e->submit(bad).error().code, ErrorCode::kResources);
  EXPECT_EQ(e->submit(good).error().code, ErrorCode::kInvalidArgument) << "the same id twice";
  while (!e->idle())
    step_into(*e, samples);
  expect_same(samples, naive_all(*weights_, {good}));
}

// Ten thousand at once, while others run.
TEST_F(EngineTest, RefusesMoreGroupsThanTheQueueHolds) {
  auto e = engine();
  const GroupRequest running = plain(20000, 3);
  ASSERT_TRUE(e->submit(running));
  Samples samples;
  step_into(*e, samples);
  std::uint64_t taken = 0;
  for (std::uint64_t id = 0; id < 10000; ++id) {
    const auto submitted = e->submit(request_of(id, {1, 2}, 1, 1));
    taken += submitted ? 1 : 0;
    if (submitted) continue;
    ASSERT_EQ(submitted.error().code, ErrorCode::kOverloaded);
    ASSERT_NE(submitted.error().message.find("4096 groups wait already"), std::string::npos);
  }
  EXPECT_EQ(taken, limits::kEngineQueue_groups_max);
  while (!e->idle())
    step_into(*e, samples);
  EXPECT_EQ(samples.size(), limits::kEngineQueue_groups_max + 3);
  std::erase_if(samples, [](const auto& one) { return one.first.first != 20000; });
  expect_same(samples, naive_all(*weights_, {running}));
}

TEST_F(EngineTest, RefusesImpossibleLimits) {
  const auto error = [&](EngineLimits limits, std::vector<std::int32_t> eos = {}) {
    const auto made = Engine::create(weights_, limits, std::move(eos), nullptr, team_);
    return made ? ErrorCode::kInternal : made.error().code;
  };
  EngineLimits limits;
  limits.context = 321;
  EXPECT_EQ(error(limits), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error(limits_of(0, 8, 8)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error(limits_of(8, 0, 8)), ErrorCode::kInvalidArgument);
  limits = {};
  limits.kv_cache_gb.bytes = 100;
  EXPECT_EQ(error(limits), ErrorCode::kResources);
  EXPECT_EQ(error({}, {1037}), ErrorCode::kData);
}

TEST_F(EngineTest, LogitsThatAreNotFiniteNameTheGroupAndSpareTheOthers) {
  model::ParamStore params(tiny_spec());
  model::randomise(params, 1, 0.25f);
  const std::int32_t poison = 7;
  params.data()[params.layout().embedding + poison * tiny_spec().hidden] =
      std::numeric_limits<float>::quiet_NaN();
  const Weights weights = pack(params, 3);
  GroupRequest good = plain(1, 2, 12), bad = plain(2, 1, 12);
  good.sampling.stop_tokens = {poison};
  std::replace(good.prompt.begin(), good.prompt.end(), poison, 8);
  bad.prompt[20] = poison;
  auto e = make_engine(weights, limits_of(16, 64, 60), team_);
  Samples samples;
  ASSERT_TRUE(e->submit(good));
  step_into(*e, samples);
  ASSERT_TRUE(e->submit(bad));
  for (int i = 0; i < 2; ++i) {
    const auto failed = e->step();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::kNumeric);
    EXPECT_NE(failed.error().message.find("group 2, sample 0"), std::string::npos);
    EXPECT_NE(failed.error().message.find("position 21"), std::string::npos);
    EXPECT_NE(failed.error().message.find("version 3"), std::string::npos);
    EXPECT_EQ(e->broken_group(), core::GroupId{2});
  }
  EXPECT_EQ(e->abort({2}).size(), 1u);
  EXPECT_EQ(e->broken_group(), std::nullopt);
  while (!e->idle())
    step_into(*e, samples);
  expect_same(samples, naive_all(*weights, {good}));
}

TEST_F(EngineTest, ALongPromptDoesNotStopDecoding) {
  auto e = make_engine(weights_, limits_of(16, 8, 60), team_);
  GroupRequest running = plain(1, 3, 40);
  ASSERT_TRUE(e->submit(running));
  Samples samples;
  while (e->counters().decode_tokens < 6)
    step_into(*e, samples);
  core::Rng rng(2);
  ASSERT_TRUE(e->submit(request_of(2, random_prompt(rng, 250), 1, 1)));
  const std::uint64_t before = e->counters().decode_tokens;
  for (int i = 0; i < 20; ++i)
    step_into(*e, samples);
  EXPECT_EQ(e->counters().decode_tokens, before + 60);
}

TEST_F(EngineTest, CountsWhatItDid) {
  auto e = engine();
  (void)run_all(*e, {plain(1, 4, 5)});
  const EngineCounters counters = e->counters();
  EXPECT_EQ(counters.prefill_tokens, 21u);  // the prompt once, not four times
  EXPECT_EQ(counters.decode_tokens, 20u);
  EXPECT_EQ(counters.steps, 5u);
  EXPECT_EQ(counters.finished, 4u);
  EXPECT_EQ(counters.free_blocks, 60);
  EXPECT_EQ(counters.running_sequences, 0);
  EXPECT_EQ(counters.waiting_groups, 0);
}

TEST_F(EngineTest, ShowsWhatASampleHasDrawnSoFar) {
  auto e = engine();
  const std::vector<std::int32_t> whole = tokens_of(plain());
  ASSERT_TRUE(e->submit(plain()));
  EXPECT_TRUE(e->drawn({1}, 0).empty()) << "waiting";
  std::vector<std::int32_t> seen;
  while (true) {
    auto done = e->step();
    ASSERT_TRUE(done);
    if (!done->empty()) break;
    const auto drawn = e->drawn({1}, 0);
    ASSERT_GE(drawn.size(), seen.size());
    seen.assign(drawn.begin(), drawn.end());
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), whole.begin()));
  }
  EXPECT_EQ(seen.size(), 15u);
  EXPECT_TRUE(e->drawn({1}, 0).empty()) << "finished";
  EXPECT_TRUE(e->drawn({1}, 9).empty());
}

TEST_F(EngineTest, AnIdleStepDoesNothing) {
  auto e = engine();
  const auto finished = e->step();
  ASSERT_TRUE(finished);
  EXPECT_TRUE(finished->empty());
  EXPECT_EQ(e->counters().steps, 0u);
}

}  // namespace
}  // namespace troupe::engine
