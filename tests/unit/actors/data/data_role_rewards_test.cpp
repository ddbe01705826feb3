// Rewards that come, go and are lost while groups are in flight: each group is scored by the set of
// its ticket, and nobody waits for a reward that has gone.
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;

DataRoleOptions starting_with(std::vector<RewardMember> rewards, std::string formula) {
  DataRoleOptions options;
  options.samples = 2;
  options.rewards = std::move(rewards);
  options.reward_formula = std::move(formula);
  return options;
}

// Two rewards; a group's mean tells its set: 1.5 for `right`, 150 for `short`.
struct Rewards : DataStage {
  explicit Rewards(std::vector<RewardMember> first = {kRightOnce}, std::string formula = "")
      : DataStage(starting_with(std::move(first), std::move(formula))),
        right(reward("reward/right", numbers_times(1))),
        brief(reward("reward/short", numbers_times(100))) {}
  double mean(std::uint64_t update, std::size_t slot = 0) {
    const auto statuses = ask(AwaitGroups{update, {}});
    EXPECT_TRUE(statuses) << statuses.error().message;
    return statuses->groups[slot].mean_score;
  }
  std::shared_ptr<ScriptedReward> right, brief;
};

}  // namespace

TEST(DataRoleRewards, AGroupKeepsTheSetOfItsTicket) {
  Rewards stage;
  const auto before = stage.issue(0, 1)[0];
  const auto early = stage.issue(1, 2);
  ASSERT_TRUE(stage.ask(change(1, 1, {kRightOnce, kShortOnce})));
  const auto later = stage.issue(2, 1)[0];
  const auto again = stage.reissue(early[1])->tickets[0];  // the set in force now
  for (const auto& ticket : {before, early[0], again, later}) {
    ASSERT_TRUE(stage.ask(delivery(ticket, 2)));
  }
  EXPECT_EQ(stage.mean(0), 1.5);
  EXPECT_EQ(stage.mean(1, 0), 1.5);
  EXPECT_EQ(stage.mean(1, 1), 151.5);
  EXPECT_EQ(stage.mean(2), 151.5);
  EXPECT_EQ(stage.amount("reward_set"), 1);
  EXPECT_EQ(stage.brief->calls.size(), 2u);
}

// One that was detached may come back as another.
TEST(DataRoleRewards, ARewardIsIntroducedForEachSet) {
  Rewards stage({kRightOnce, kShortOnce});
  ASSERT_TRUE(stage.ask(delivery(stage.issue(0, 1)[0], 2)));
  EXPECT_EQ(stage.mean(0), 151.5);
  ASSERT_TRUE(stage.ask(change(1, 1, {kRightOnce})));
  ASSERT_TRUE(stage.ask(change(2, 1, {kRightOnce, kShortOnce})));
  stage.brief->reads = {false, {"tests"}};
  const auto later = stage.issue(1, 2);
  for (const auto& ticket : later)
    ASSERT_TRUE(stage.ask(delivery(ticket, 2)));
  EXPECT_EQ(stage.mean(1), 151.5);
  EXPECT_EQ(stage.brief->introduced, 2);
  EXPECT_EQ(stage.brief->calls[0].group.columns, "{}");
  EXPECT_EQ(stage.brief->calls[1].group.columns, R"({"tests":["t1"]})");
}

TEST(DataRoleRewards, AChangeAheadLeavesEarlierUpdatesAlone) {
  Rewards stage;
  ASSERT_TRUE(stage.ask(change(1, 2, {kShortOnce})));
  const auto early = stage.reissue(stage.issue(1, 1)[0])->tickets[0];
  const auto later = stage.issue(2, 1)[0];
  stage.ask(delivery(early, 2)).value();
  stage.ask(delivery(later, 2)).value();
  EXPECT_EQ(stage.mean(1), 1.5);
  EXPECT_EQ(stage.mean(2), 150);
}

TEST(DataRoleRewards, EvaluationsAreScoredByTheFirstSet) {
  Rewards stage;
  ASSERT_TRUE(stage.ask(change(1, 0, {kShortOnce})));
  IssueTickets issue;
  issue.update = experience::kFirstEvaluation + 8;
  issue.groups = 1;
  issue.samples = 1;
  const auto ticket = stage.ask(issue)->tickets[0];
  stage.ask(delivery(ticket, 1)).value();
  EXPECT_EQ(stage.mean(issue.update), 1);
}

// Every row has 3 in the column "level".
TEST(DataRoleRewards, OnlyTheRewardsOfTheRowsDomainAreAsked) {
  Rewards stage({kRightOnce, kShortOnce}, "domain(level, 3: right, other: short)");
  const auto tickets = stage.issue(0, 1);
  stage.network.crash("reward/short");
  ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
  EXPECT_EQ(stage.mean(0), 1.5) << "without the reward that is away";
  EXPECT_EQ(stage.right->calls.size(), 1u);
  EXPECT_TRUE(stage.brief->calls.empty());
}

TEST(DataRoleRewards, ARowOfNoDomainAsksNobodyAndHasNoScore) {
  Rewards stage({kRightOnce, kShortOnce}, "domain(level, 4: right, 5: short)");
  const auto tickets = stage.issue(0, 1);
  ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses) << statuses.error().message;
  EXPECT_NE(statuses->groups[0].cause.find("the formula has no term for '3' in column 'level'"),
            std::string::npos)
      << statuses->groups[0].cause;
  EXPECT_TRUE(stage.right->calls.empty());
  EXPECT_TRUE(stage.brief->calls.empty());
}

TEST(DataRoleRewards, ALostRewardFailsItsGroupsAtOnceAndTheSlotGoesOnWithoutIt) {
  Rewards stage({kRightOnce, kShortOnce});
  const auto tickets = stage.issue(0, 2);
  stage.network.crash("reward/short");
  stage.ask(delivery(tickets[0], 2)).value();
  auto waiting = stage.begin(AwaitGroups{0, {}});
  stage.run(5s);
  EXPECT_FALSE(waiting.done());
  ASSERT_TRUE(stage.ask(change(1, 0, {kRightOnce}, {"short"})));
  stage.run(1ms);
  ASSERT_TRUE(waiting.done());
  for (const auto& group : waiting.value()->groups) {
    EXPECT_EQ(group.state, GroupState::kFailed);
    EXPECT_EQ(group.cause, "reward short was lost");
  }
  ReissueTickets again;
  again.tickets = tickets;
  const auto fresh = stage.ask(again);
  for (const auto& ticket : fresh->tickets)
    stage.ask(delivery(ticket, 2)).value();
  EXPECT_EQ(stage.mean(0, 0), 1.5);
  EXPECT_EQ(stage.mean(0, 1), 1.5);
  EXPECT_EQ(stage.amount("failed_groups/reward_lost"), 2);
  stage.run(61s);
  EXPECT_EQ(stage.amount("failed_groups/reward_gone"), 0);  // nobody waited on
}

TEST(DataRoleRewards, ALossThatIsToldTwiceSparesTheNextOfThatName) {
  Rewards stage({kRightOnce, kShortOnce});
  const auto lost = change(1, 0, {kRightOnce}, {"short"});
  ASSERT_TRUE(stage.ask(lost));
  ASSERT_TRUE(stage.ask(change(2, 0, {kRightOnce, kShortOnce})));
  const auto ticket = stage.issue(0, 1)[0];
  EXPECT_TRUE(stage.ask(lost));
  EXPECT_EQ(stage.amount("open_groups/issued"), 1);
  stage.ask(delivery(ticket, 2)).value();
  EXPECT_EQ(stage.mean(0), 151.5);
}

TEST(DataRoleRewards, DrainAnswersWhenTheLastGroupIsScored) {
  Rewards stage({kRightOnce, kShortOnce});
  stage.brief->hold();
  const auto tickets = stage.issue(0, 2);
  ASSERT_TRUE(stage.ask(change(1, 1, {kRightOnce})));
  stage.ask(delivery(tickets[0], 2)).value();
  auto drained = stage.begin(DrainReward{"short"});
  stage.run(1s);
  EXPECT_FALSE(drained.done());
  stage.brief->release();
  stage.run(1s);
  EXPECT_FALSE(drained.done());  // the other group has no samples yet
  stage.ask(delivery(tickets[1], 2)).value();
  stage.run(1ms);
  ASSERT_TRUE(drained.done());
  EXPECT_TRUE(drained.value());
}

TEST(DataRoleRewards, AfterADrainNoSlotGetsTheReward) {
  Rewards stage({kRightOnce, kShortOnce});
  const auto tickets = stage.issue(0, 2);
  ASSERT_TRUE(stage.ask(change(1, 1, {kRightOnce})));
  stage.right->answer = failing(ErrorCode::kData, "no");
  for (const auto& ticket : tickets)
    stage.ask(delivery(ticket, 2)).value();
  stage.run(1ms);
  ASSERT_TRUE(stage.ask(DrainReward{"short"}));
  stage.right->answer = numbers_times(1);
  const auto again = stage.reissue(tickets[0])->tickets[0];
  stage.ask(delivery(again, 2)).value();
  stage.run(1ms);
  EXPECT_EQ(stage.ask(AwaitGroups{0, {}})->groups[0].mean_score, 1.5);
}

TEST(DataRoleRewards, DrainWaitsForUpdatesThatStillGetTheReward) {
  Rewards stage({kRightOnce, kShortOnce});
  ASSERT_TRUE(stage.ask(change(1, 2, {kRightOnce})));  // updates 0 and 1 are still to come
  auto drained = stage.begin(DrainReward{"short"});
  for (std::uint64_t update = 0; update < 2; ++update) {
    stage.run(1s);
    EXPECT_FALSE(drained.done());
    stage.ask(delivery(stage.issue(update, 1)[0], 2)).value();
    EXPECT_EQ(stage.mean(update), 151.5);
  }
  stage.run(1ms);
  EXPECT_TRUE(drained.done());
}

TEST(DataRoleRewards, ARewardOfTheNewestSetIsNotDrained) {
  Rewards stage({kRightOnce, kShortOnce});
  const auto refused = stage.ask(DrainReward{"short"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace troupe::actors::data
