// Held-out prompts with rewards of their own: who scores which, what the log brings back, and that
// a reward of theirs that stays away ends nothing.
#include "actors/data/held_out_prompts.hpp"
#include "tests/unit/actors/data/log_stage.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;
using HeldOutRewardsTest = LogStage;

const std::uint64_t kEvaluation = experience::evaluation_after(0, false);

// Two prompts of the run's reward, then two of `short` alone.
DataRoleOptions with_sets(DataRoleOptions options) {
  options.rewards = {kRightOnce};
  options.held_out = {{2, {}, ""}, {2, {kShortOnce}, ""}};
  return options;
}

std::vector<experience::Ticket> sampled(DataStage& stage) {
  IssueTickets issue;
  issue.update = kEvaluation;
  issue.groups = 4;
  issue.samples = 2;
  const auto tickets = stage.ask(issue)->tickets;
  for (const auto& ticket : tickets)
    stage.ask(delivery(ticket, 2)).value();
  return tickets;
}

std::vector<double> means(DataStage& stage) {
  std::vector<double> out;
  const auto statuses = stage.ask(AwaitGroups{kEvaluation, {}});
  EXPECT_TRUE(statuses) << statuses.error().message;
  for (const GroupStatus& group : statuses->groups)
    out.push_back(group.ready() ? group.mean_score : -1);
  return out;
}

}  // namespace

TEST_F(HeldOutRewardsTest, EachSetIsScoredByItsOwn) {
  DataRoleOptions options;
  DataStage stage(with_sets(options));
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto brief = stage.reward("reward/short", numbers_times(10));
  EXPECT_EQ(sampled(stage).size(), 4u);
  EXPECT_EQ(means(stage), (std::vector<double>{1.5, 1.5, 15, 15}));
  EXPECT_EQ(right->calls.size(), 2u);
  EXPECT_EQ(brief->calls.size(), 2u);
}

// The scores of a set are found again by its number, without a call.
TEST_F(HeldOutRewardsTest, TheLogBringsThemBack) {
  {
    DataStage stage(with_sets(options()));
    stage.reward("reward/right", numbers_times(1));
    stage.reward("reward/short", numbers_times(10));
    sampled(stage);
    EXPECT_EQ(means(stage), (std::vector<double>{1.5, 1.5, 15, 15}));
  }
  DataStage again(with_sets(options()));
  IssueTickets issue;
  issue.update = kEvaluation;
  issue.groups = 4;
  issue.samples = 2;
  EXPECT_TRUE(again.ask(issue)->tickets.empty()) << "all samples are there";
  EXPECT_EQ(means(again), (std::vector<double>{1.5, 1.5, 15, 15}));
}

TEST_F(HeldOutRewardsTest, OneThatStaysAwayIsLeftOut) {
  DataRoleOptions options;
  NotedStage noted(with_sets(options));
  DataStage& stage = noted.stage;
  stage.reward("reward/right", numbers_times(1));
  const auto brief = stage.reward("reward/short", failing(ErrorCode::kPeerLost, "status 503"));
  sampled(stage);
  auto waiting = stage.begin(AwaitGroups{kEvaluation, {}});
  stage.run(299s);
  EXPECT_FALSE(waiting.done()) << "it may come back";
  stage.run(20s);
  ASSERT_TRUE(waiting.done());
  ASSERT_TRUE(waiting.value()) << waiting.value().error().message;
  EXPECT_EQ(means(stage), (std::vector<double>{1.5, 1.5, -1, -1}));
  const auto statuses = stage.ask(AwaitGroups{kEvaluation, {}});
  EXPECT_NE(statuses->groups[3].cause.find(
                "reward short has been away for 300 s (reward/short: status 503"),
            std::string::npos)
      << statuses->groups[3].cause;
  // The next evaluation asks it again.
  brief->answer = numbers_times(10);
  ASSERT_TRUE(stage.ask(CommitUpdate{kEvaluation, 0}));
  IssueTickets issue;
  issue.update = experience::evaluation_after(1, false);
  issue.groups = 4;
  issue.samples = 2;
  const auto tickets = stage.ask(issue)->tickets;
  for (const auto& ticket : tickets)
    stage.ask(delivery(ticket, 2)).value();
  const auto next = stage.ask(AwaitGroups{issue.update, {}});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->groups[3].mean_score, 15);
}

TEST_F(HeldOutRewardsTest, TheRunsOwnRewardStillEndsTheWait) {
  DataRoleOptions options;
  DataStage stage(with_sets(options));
  stage.reward("reward/right", failing(ErrorCode::kPeerLost, "status 503"));
  stage.reward("reward/short", numbers_times(10));
  sampled(stage);
  auto waiting = stage.begin(AwaitGroups{kEvaluation, {}});
  stage.run(320s);
  ASSERT_TRUE(waiting.done());
  EXPECT_FALSE(waiting.value()) << "training needs it, too";
}

TEST(HeldOutPrompts, OneSetAfterTheOther) {
  struct Few final : PromptSource {
    explicit Few(std::string of) : name(std::move(of)) {}
    std::uint64_t size() const override { return 2; }
    core::Result<Prompt> at(std::uint64_t position) override {
      Prompt prompt;
      prompt.row = position;
      prompt.text = name + std::to_string(position);
      return prompt;
    }
    std::string name;
  };
  std::vector<PromptsOfSet> sets;
  sets.push_back({"", std::make_unique<Few>("x")});
  sets.push_back({"chat", std::make_unique<Few>("y")});
  HeldOutPrompts prompts(std::move(sets));
  EXPECT_EQ(prompts.size(), 4u);
  EXPECT_EQ(prompts.at(1)->text, "x1");
  EXPECT_EQ(prompts.at(1)->set, "");
  EXPECT_EQ(prompts.at(2)->text, "y0");
  EXPECT_EQ(prompts.at(2)->row, 0u) << "a row of its own dataset";
  EXPECT_EQ(prompts.at(3)->set, "chat");
  EXPECT_EQ(prompts.at(4)->text, "x0") << "the next evaluation";
}

}  // namespace troupe::actors::data
