// Batches that wait are scored by one job, in order; a batch at fault fails alone.
#include "actors/reward/queued_reward.hpp"

#include "actors/reward/limits.hpp"
#include "tests/unit/actors/reward/answered.hpp"
#include "tests/unit/actors/reward/calls_stage.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::reward {
namespace {

// The score of a sample is the number that is its prompt; "x" is an error.
class JoinedSource final : public RewardSource {
 public:
  struct Seen {
    std::vector<std::size_t> sizes;  // groups of each call
  };
  explicit JoinedSource(Seen& seen) : seen_(seen) {}
  std::string name() const override { return "joined"; }
  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration) override {
    seen_.sizes.push_back(groups.size());
    std::vector<RewardScore> scores;
    for (const RewardGroup& group : groups) {
      if (group.prompt == "x") return core::fail(core::ErrorCode::kData, "x is none");
      scores.push_back({std::stod(group.prompt), ""});
    }
    return scores;
  }

 private:
  Seen& seen_;
};

std::vector<RewardGroup> prompts_to(int count) {
  std::vector<RewardGroup> groups;
  for (int i = 0; i < count; ++i)
    groups.push_back(answered(std::to_string(i), ""));
  return groups;
}

}  // namespace

TEST(QueuedReward, WhatWaitsIsScoredTogether) {
  JoinedSource::Seen seen;
  CallsStage stage(make_queued_reward(std::make_unique<JoinedSource>(seen)));
  const auto answers = stage.score(prompts_to(100), std::chrono::seconds(30));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]);
    EXPECT_EQ(answers[i]->front().value, static_cast<double>(i));
  }
  std::size_t sum = 0;
  for (const std::size_t size : seen.sizes) {
    EXPECT_LE(size, limits::kRewardJob_groups_max);
    sum += size;
  }
  EXPECT_EQ(sum, 100u) << "each once";
  EXPECT_LT(seen.sizes.size(), 100u);
  EXPECT_EQ(stage.amount("batches"), 100);
  EXPECT_EQ(stage.amount("jobs"), static_cast<double>(seen.sizes.size()));
}

TEST(QueuedReward, ABatchAtFaultFailsAlone) {
  JoinedSource::Seen seen;
  CallsStage stage(make_queued_reward(std::make_unique<JoinedSource>(seen)));
  auto groups = prompts_to(10);
  groups[4].prompt = "x";
  const auto answers = stage.score(groups, std::chrono::seconds(30));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i == 4) {
      ASSERT_FALSE(answers[i]);
      EXPECT_EQ(answers[i].error().message, "x is none");
    } else {
      ASSERT_TRUE(answers[i]) << i;
      EXPECT_EQ(answers[i]->front().value, static_cast<double>(i));
    }
  }
}

}  // namespace troupe::actors::reward
