// Scorers that are away: their groups are kept and no prompt is replaced, people hear of it once,
// and whoever waits for the groups is told when the patience has come to its end.
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;

struct Away : NotedStage {
  explicit Away(std::vector<RewardMember> rewards) : NotedStage(of(std::move(rewards))) {}
  static DataRoleOptions of(std::vector<RewardMember> rewards) {
    DataRoleOptions options;
    options.samples = 2;
    options.rewards = std::move(rewards);
    return options;
  }
};

std::vector<std::int64_t> ms_between(const std::vector<core::TimePoint>& times) {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) {
    gaps.push_back(std::chrono::round<std::chrono::milliseconds>(times[i] - times[i - 1]).count());
  }
  return gaps;
}

}  // namespace

TEST(DataRoleAway, ALostRewardIsAskedAgainUntilItIsBackAndCountsOnce) {
  Away away({kRight});
  DataStage& stage = away.stage;
  const auto right = stage.reward("reward/right", numbers_times(1));
  right->hold();
  const auto ticket = stage.issue(0, 1)[0];
  stage.ask(delivery(ticket, 2)).value();
  stage.run(10ms);
  ASSERT_EQ(right->calls.size(), 1u);  // at work when it dies
  stage.network.crash("reward/right");
  stage.run(20s);
  EXPECT_EQ(stage.amount("open_groups/generated"), 1);
  const auto back = stage.reward("reward/right", numbers_times(3));
  stage.run(11s);
  EXPECT_EQ(back->calls.size(), 1u);
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses);
  EXPECT_EQ(statuses->groups[0].mean_score, 2 * 4.5);
  EXPECT_EQ(stage.amount("failed_groups/reward_gone"), 0);
  ASSERT_EQ(away.notes.size(), 2u);
  EXPECT_EQ(away.notes[0].rfind("reward right is away: ", 0), 0u) << away.notes[0];
  EXPECT_NE(away.notes[0].find("; waiting up to 300 s (--reward.away_s)"), std::string::npos);
  EXPECT_EQ(away.notes[1].rfind("reward right is back after 2", 0), 0u) << away.notes[1];
  EXPECT_GE(stage.amount("scorer_retries"), 7);
}

TEST(DataRoleAway, PausesDoubleUpToTenSeconds) {
  Away away({kRight});
  const auto right = away.stage.reward("reward/right", failing(ErrorCode::kPeerLost, "503"));
  away.stage.ask(delivery(away.stage.issue(0, 1)[0], 2)).value();
  away.stage.run(35s);
  EXPECT_EQ(ms_between(right->times),
            (std::vector<std::int64_t>{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}));
  EXPECT_EQ(away.notes.size(), 1u);
  EXPECT_EQ(away.stage.amount("scorers_away"), 1);
}

TEST(DataRoleAway, WhoWaitsIsToldAfterFiveMinutesAndTheGroupIsKept) {
  Away away({kRight, kShort});
  DataStage& stage = away.stage;
  stage.reward("reward/right", numbers_times(1));
  const auto gone = stage.reward("reward/short", failing(ErrorCode::kPeerLost, "status 503"));
  stage.ask(delivery(stage.issue(0, 1)[0], 2)).value();
  auto waiting = stage.begin(AwaitGroups{0, {}});
  stage.run(299s);
  EXPECT_FALSE(waiting.done());
  stage.run(2s);
  ASSERT_TRUE(waiting.done());
  ASSERT_FALSE(waiting.value());
  EXPECT_EQ(waiting.value().error().code, ErrorCode::kPeerLost);
  const std::string& cause = waiting.value().error().message;
  EXPECT_NE(cause.find("reward short has been away for 300 s"), std::string::npos) << cause;
  EXPECT_NE(cause.find("status 503"), std::string::npos) << cause;
  EXPECT_NE(cause.find("--reward.away_s"), std::string::npos) << cause;
  EXPECT_EQ(stage.amount("open_groups/generated"), 1);
  EXPECT_EQ(away.notes.size(), 1u);
  // Back before anybody drew the consequence: the group is scored after all.
  gone->answer = numbers_times(1);
  stage.run(11s);
  EXPECT_EQ(stage.amount("open_groups/ready"), 1);
  EXPECT_TRUE(stage.ask(AwaitGroups{0, {}}));
  EXPECT_EQ(stage.amount("failed_groups/reward_gone"), 0);
}

// Without staleness nothing is issued again before all groups are settled: who waits for these must
// hear of it, too.
TEST(DataRoleAway, AGroupThatFailedDoesNotHideThatNobodyCanScoreAnother) {
  Away away({kRight, kShort});
  DataStage& stage = away.stage;
  stage.reward("reward/right", [](const Score& request) -> core::Result<Scores> {
    if (request.group.prompt == "p0") return core::fail(ErrorCode::kData, "it raised");
    return numbers_times(1)(request);
  });
  stage.reward("reward/short", failing(ErrorCode::kPeerLost, "refused"));
  for (const auto& ticket : stage.issue(0, 2))
    stage.ask(delivery(ticket, 2)).value();
  EXPECT_TRUE(stage.ask(AwaitGroups{0, {}})) << "one has failed";
  stage.run(301s);
  const auto told = stage.ask(AwaitGroups{0, {}});
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ErrorCode::kPeerLost);
}

TEST(DataRoleAway, TheFirstAnswerWakesAllWhoWait) {
  Away away({kRight});
  const auto right = away.stage.reward("reward/right", failing(ErrorCode::kPeerLost, "refused"));
  const auto tickets = away.stage.issue(0, 40);
  for (const auto& ticket : tickets)
    away.stage.begin(delivery(ticket, 2));
  away.stage.run(120s);
  EXPECT_EQ(away.notes.size(), 1u);
  right->answer = numbers_times(1);
  away.stage.run(10s);
  right->calls.clear();
  away.stage.run(20s);
  EXPECT_EQ(right->calls.size(), 0u) << "all were answered within the longest pause";
  EXPECT_EQ(away.stage.amount("open_groups/ready"), 40);
  EXPECT_EQ(away.notes.size(), 2u);
}

// It answers for other groups meanwhile: what it does not get over is this one.
TEST(DataRoleAway, ARequestThatNeverGetsAnAnswerIsReplacedWhenOthersDo) {
  Away away({kRight});
  away.stage.reward("reward/right", [](const Score& request) -> core::Result<Scores> {
    if (request.group.prompt == "p0") return core::fail(ErrorCode::kPeerLost, "status 500");
    return numbers_times(1)(request);
  });
  const auto tickets = away.stage.issue(0, 40);
  away.stage.ask(delivery(tickets[0], 2)).value();
  for (std::size_t i = 1; i < 36; ++i) {
    away.stage.run(9s);
    away.stage.ask(delivery(tickets[i], 2)).value();
  }
  away.stage.run(1ms);
  EXPECT_EQ(away.stage.amount("failed_groups/reward_gone"), 1);
  EXPECT_EQ(away.stage.amount("open_groups/ready"), 35);
  EXPECT_LE(away.notes.size(), 12u) << "at most one coming and going a minute";
}

TEST(DataRoleAway, WhoIsOverloadedIsThere) {
  Away away({kRight});
  const auto right = away.stage.reward("reward/right", failing(ErrorCode::kOverloaded, "full"));
  away.stage.ask(delivery(away.stage.issue(0, 1)[0], 2)).value();
  auto waiting = away.stage.begin(AwaitGroups{0, {}});
  away.stage.run(700s);
  EXPECT_FALSE(waiting.done());
  EXPECT_EQ(away.notes.size(), 0u);
  right->answer = numbers_times(1);
  away.stage.run(11s);
  ASSERT_TRUE(waiting.done());
  EXPECT_TRUE(waiting.value());
}

// The time away is that of calls that were made, not of a quiet hour between two.
TEST(DataRoleAway, TheTimeWithoutAnyCallDoesNotCount) {
  Away away({kRight, kShort});
  DataStage& stage = away.stage;
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto gone = stage.reward("reward/short", failing(ErrorCode::kPeerLost, "refused"));
  right->answer = failing(ErrorCode::kData, "it raised");
  right->delay = 5s;
  const auto tickets = stage.issue(0, 2);
  stage.ask(delivery(tickets[0], 2)).value();
  stage.run(20s);
  EXPECT_EQ(stage.amount("failed_groups/reward_error"), 1);
  EXPECT_EQ(stage.amount("scorers_away"), 0);
  stage.run(3600s);
  right->answer = numbers_times(1);
  const auto again = stage.reissue(tickets[0])->tickets[0];
  stage.ask(delivery(again, 2)).value();
  stage.ask(delivery(tickets[1], 2)).value();
  auto waiting = stage.begin(AwaitGroups{0, {}});
  stage.run(200s);
  EXPECT_FALSE(waiting.done());
  gone->answer = numbers_times(1);
  stage.run(11s);
  ASSERT_TRUE(waiting.done());
  EXPECT_TRUE(waiting.value());
}

}  // namespace troupe::actors::data
