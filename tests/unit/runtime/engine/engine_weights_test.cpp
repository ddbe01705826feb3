// New weights between steps: every token carries the version that computed it, and what follows a
// swap equals a fresh engine that holds the new weights and is given prompt and tokens so far.
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

// What must follow when sample `index` of `request` had `tokens` when `weights` came.
Sample continued(const model::PackedWeights& weights,
                 const GroupRequest& request,
                 std::int32_t index,
                 const Sample& so_far) {
  Sample out = so_far;
  std::vector<std::int32_t> sequence = request.prompt;
  sequence.insert(sequence.end(), so_far.tokens.begin(), so_far.tokens.end());
  while (static_cast<std::int32_t>(out.tokens.size()) < request.sampling.max_new_tokens) {
    const Draw draw = naive_draw(weights, request, index, sequence, {});
    sequence.push_back(draw.token);
    out.tokens.push_back(draw.token);
    out.logprobs.push_back(draw.logprob);
    out.versions.push_back(weights.version());
  }
  out.finish = FinishReason::kLength;
  return out;
}

Sample front(const Sample& sample, core::Version version) {
  Sample out = sample;
  const auto kept = std::count(sample.versions.begin(), sample.versions.end(), version);
  out.tokens.resize(static_cast<std::size_t>(kept));
  out.logprobs.resize(static_cast<std::size_t>(kept));
  out.versions.resize(static_cast<std::size_t>(kept));
  return out;
}

// Runs groups of several samples with a swap after `steps`, checks every sample against both parts.
void expect_exact_swap(EngineLimits limits, int steps) {
  const Weights old_weights = tiny_weights(1, 10), new_weights = tiny_weights(2, 11);
  core::SerialTeam team;
  auto engine = make_engine(old_weights, limits, team);
  core::Rng rng(5);
  std::vector<GroupRequest> requests;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    requests.push_back(request_of(id, random_prompt(rng, id % 3 == 0 ? 32 : 7 * id), 2, 24));
    ASSERT_TRUE(engine->submit(requests.back()));
  }
  Samples samples;
  for (int i = 0; i < steps; ++i)
    step_into(*engine, samples);
  ASSERT_TRUE(engine->set_weights(new_weights, KvAction::kRecompute));
  EXPECT_EQ(engine->weights().version(), 11u);
  while (!engine->idle())
    step_into(*engine, samples);
  Samples expected;
  std::size_t mixed = 0;
  for (const GroupRequest& request : requests) {
    for (std::int32_t i = 0; i < request.samples; ++i) {
      const Sample old_part = front(samples.at({request.id.value, i}), 10);
      mixed += old_part.tokens.empty() || old_part.tokens.size() == 24 ? 0 : 1;
      const Sample whole = naive_sample(*old_weights, request, i);
      ASSERT_TRUE(std::equal(old_part.tokens.begin(), old_part.tokens.end(), whole.tokens.begin()));
      expected.emplace(std::pair(request.id.value, i),
                       continued(*new_weights, request, i, old_part));
      std::copy_n(whole.logprobs.begin(), old_part.logprobs.size(),
                  expected.at({request.id.value, i}).logprobs.begin());
    }
  }
  expect_same(samples, expected);
  EXPECT_GT(mixed, 0u);
}

TEST(EngineWeights, SwapWhileEverythingRuns) {
  expect_exact_swap(limits_of(16, 512, 60), 9);
}

TEST(EngineWeights, SwapAmidChunkedPrompts) {
  for (int steps = 2; steps < 16; ++steps) {
    SCOPED_TRACE(steps);
    expect_exact_swap(limits_of(16, 13, 60), steps);
  }
}

TEST(EngineWeights, SwapWithPreemptedSamples) {
  for (int steps = 4; steps < 40; steps += 5) {
    SCOPED_TRACE(steps);
    expect_exact_swap(limits_of(16, 40, 9), steps);
  }
}

// Counts what a run with a swap computes, and checks where the versions change.
void expect_kept(EngineLimits limits, int steps) {
  const Weights old_weights = tiny_weights(1, 10), new_weights = tiny_weights(2, 11);
  core::SerialTeam team;
  const auto run = [&](bool swap, Samples& samples) {
    auto engine = make_engine(old_weights, limits, team);
    core::Rng rng(5);
    for (std::uint64_t id = 1; id <= 6; ++id)
      EXPECT_TRUE(engine->submit(request_of(id, random_prompt(rng, 7 * id), 2, 24)));
    for (int i = 0; i < steps; ++i)
      step_into(*engine, samples);
    std::map<std::pair<std::uint64_t, std::int32_t>, std::size_t> drawn;
    for (std::uint64_t id = 1; id <= 6; ++id)
      for (std::int32_t i = 0; i < 2; ++i)
        drawn[{id, i}] = engine->drawn(core::GroupId{id}, i).size();
    if (swap) {
      EXPECT_TRUE(engine->set_weights(new_weights, KvAction::kKeep));
    }
    while (!engine->idle())
      step_into(*engine, samples);
    for (const auto& [key, sample] : samples) {
      for (std::size_t t = 0; t < sample.versions.size(); ++t) {
        const bool old_one = !swap || t < drawn[key] || drawn[key] == 0;
        if (drawn[key] == 0) continue;  // not begun yet, or done before the swap
        EXPECT_EQ(sample.versions[t], old_one ? 10u : 11u) << key.first << " token " << t;
      }
    }
    return engine->counters();
  };
  Samples without, with;
  const EngineCounters plain = run(false, without), swapped = run(true, with);
  EXPECT_EQ(swapped.prefill_tokens, plain.prefill_tokens);
  EXPECT_EQ(swapped.decode_tokens, plain.decode_tokens);
  EXPECT_EQ(swapped.steps, plain.steps);
  std::size_t mixed = 0;
  for (const auto& [key, sample] : with)
    mixed += sample.versions.front() != sample.versions.back() ? 1 : 0;
  EXPECT_GT(mixed, 0u);
}

TEST(EngineWeights, KeptKeysAndValuesAreNotComputedAgain) {
  for (int steps = 3; steps < 24; steps += 4) {
    SCOPED_TRACE(steps);
    expect_kept(limits_of(16, 512, 60), steps);
    expect_kept(limits_of(16, 30, 60), steps);
  }
}

// A group whose prompt is partly computed when the weights come forks from keys of both versions.
TEST(EngineWeights, GroupsForkFromPromptsOfAnOlderVersion) {
  const Weights old_weights = tiny_weights(1, 10), new_weights = tiny_weights(2, 11);
  core::SerialTeam team;
  auto engine = make_engine(old_weights, limits_of(4, 20, 40), team);
  core::Rng rng(5);
  ASSERT_TRUE(engine->submit(request_of(1, random_prompt(rng, 50), 3, 8)));
  Samples samples;
  step_into(*engine, samples);
  ASSERT_TRUE(engine->set_weights(new_weights, KvAction::kKeep));
  while (!engine->idle())
    step_into(*engine, samples);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(engine->counters().prefill_tokens, 50u);
  for (const auto& [key, sample] : samples)
    EXPECT_EQ(sample.versions, std::vector<core::Version>(8, 11));
}

TEST(EngineWeights, TheSameWeightsAgainChangeNothing) {
  const Weights weights = tiny_weights(1, 4);
  core::SerialTeam team;
  auto engine = make_engine(weights, limits_of(4, 64, 20), team);
  core::Rng rng(5);
  ASSERT_TRUE(engine->submit(request_of(1, random_prompt(rng, 30), 2, 10)));
  Samples samples;
  step_into(*engine, samples);
  ASSERT_TRUE(engine->set_weights(weights, KvAction::kRecompute));
  while (!engine->idle())
    step_into(*engine, samples);
  EXPECT_EQ(engine->counters().prefill_tokens, 30u);
}

}  // namespace
}  // namespace troupe::engine
