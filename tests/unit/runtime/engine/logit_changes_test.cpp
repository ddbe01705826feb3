// Penalties, biases and masks by hand, and the counts that they read.
#include "runtime/engine/logit_changes.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace troupe::engine {
namespace {

TEST(LogitChanges, ByHand) {
  const float logits[] = {2.0f, -1.0f, 0.5f, 3.0f, 9.0f};
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  params.frequency_penalty = 0.5f;
  params.presence_penalty = 0.25f;
  params.logit_bias = {{2, 1.0f}, {3, -1.0f}};
  const std::int32_t masked[] = {0}, prompt[] = {0, 1};
  const TokenCount response[] = {{1, 2}, {3, 1}};
  LogitChanges changes(5);
  const auto changed = changes.find(logits, 0.5f, params, {masked, prompt, response});
  ASSERT_EQ(changed.size(), 4u);
  EXPECT_EQ(changed[0].token, 0);
  EXPECT_EQ(changed[0].score, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(changed[1].token, 1);  // ((-1 * 2) - 0.5 * 2 - 0.25) / 2
  EXPECT_EQ(changed[1].score, -1.625f);
  EXPECT_EQ(changed[2].token, 2);  // (0.5 + 1) / 2
  EXPECT_EQ(changed[2].score, 0.75f);
  EXPECT_EQ(changed[3].token, 3);  // ((3 - 1) / 2 - 0.5 - 0.25) / 2
  EXPECT_EQ(changed[3].score, 0.125f);
}

TEST(LogitChanges, PresenceAndFrequencyLeaveThePromptAlone) {
  const float logits[] = {2.0f, -1.0f};
  SamplingParams params;
  params.presence_penalty = 1.0f;
  const std::int32_t prompt[] = {0};
  const TokenCount response[] = {{1, 5}};
  LogitChanges changes(2);
  const auto changed = changes.find(logits, 1.0f, params, {{}, prompt, response});
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].token, 1);
  EXPECT_EQ(changed[0].score, -2.0f);
}

TEST(LogitChanges, NothingAskedNothingChanged) {
  const float logits[] = {2.0f, -1.0f};
  const std::int32_t prompt[] = {0};
  const TokenCount response[] = {{1, 5}};
  LogitChanges changes(2);
  EXPECT_TRUE(changes.find(logits, 1.0f, {}, {{}, prompt, response}).empty());
}

TEST(TokenCounts, AscendAndCount) {
  core::Rng rng(4);
  TokenCounts counts;
  std::map<std::int32_t, std::int32_t> expected;
  for (int i = 0; i < 2000; ++i) {
    const auto token = static_cast<std::int32_t>(rng.next_below(300));
    counts.add(token);
    ++expected[token];
  }
  ASSERT_EQ(counts.entries().size(), expected.size());
  auto at = expected.begin();
  for (const TokenCount& entry : counts.entries()) {
    EXPECT_EQ(entry.token, at->first);
    EXPECT_EQ(entry.count, at->second);
    ++at;
  }
}

}  // namespace
}  // namespace troupe::engine
