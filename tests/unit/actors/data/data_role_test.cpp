// The data role among scripted scorers: what is asked of whom, what becomes of groups whose scorers
// are away, late or wrong, and what is said of them.
#include "actors/data/limits.hpp"
#include "actors/reward/reward_role.hpp"
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

#include <array>

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;

DataRoleOptions options_of(std::vector<RewardMember> rewards, std::int32_t samples = 2) {
  DataRoleOptions options;
  options.samples = samples;
  options.rewards = std::move(rewards);
  return options;
}

std::vector<std::string> states_of(const GroupStatuses& statuses) {
  std::vector<std::string> states;
  for (const auto& group : statuses.groups)
    states.emplace_back(experience::state_name(group.state));
  return states;
}
using States = std::vector<std::string>;

AwaitGroups await(std::uint64_t update, std::vector<core::Version> starts = {}) {
  return {update, std::move(starts)};
}

}  // namespace

TEST(DataRole, AsksEveryRewardAtOnceAndAddsUp) {
  DataStage stage(options_of({kRight, kShort}));
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto brief = stage.reward("reward/short", numbers_times(10));
  right->hold();
  brief->hold();
  const auto ticket = stage.issue(0, 1)[0];
  ASSERT_TRUE(stage.ask(delivery(ticket, 2)));
  stage.run(1ms);
  ASSERT_EQ(right->calls.size(), 1u);
  ASSERT_EQ(brief->calls.size(), 1u);
  EXPECT_EQ(right->calls[0].group.samples.size(), 2u);
  EXPECT_EQ(right->calls[0].group.prompt, "p0");
  EXPECT_EQ(right->calls[0].group.samples[1].response, "2");
  EXPECT_EQ(right->calls[0].group.label, "l0");
  right->release();
  brief->release();
  const auto statuses = stage.ask(await(0));
  ASSERT_TRUE(statuses);
  EXPECT_EQ(states_of(*statuses), (States{"ready"}));
  EXPECT_EQ(statuses->groups[0].mean_score, ((2 * 1 - 10) + (2 * 2 - 20)) / 2.0);
  const std::vector<std::pair<std::string, double>> means = {{"right", 1.5}, {"short", 15.0}};
  EXPECT_EQ(statuses->rewards, means);
}

// Gives the numbers in the responses. What it reads changes, as when a worker of another function
// takes the place of one that died.
struct ChangingCalls final : reward::RewardCalls {
  struct Seen {
    RewardReads reads;
    std::vector<std::string> columns;  // of the groups that it scored
  };
  explicit ChangingCalls(std::shared_ptr<Seen> given) : seen(std::move(given)) {}
  std::string name() const override { return "changing"; }
  RewardReads reads() const override { return seen->reads; }
  void begin(const RoleContext&) override {}
  async::task<Answer> score(std::vector<RewardGroup> groups, core::Duration) override {
    std::vector<reward::RewardScore> scores;
    for (const RewardGroup& group : groups) {
      seen->columns.push_back(group.columns);
      for (const RewardSample& sample : group.samples)
        scores.push_back({std::stod(sample.response), ""});
    }
    co_return scores;
  }
  std::shared_ptr<Seen> seen;
};

// The rows of the stage have two columns.
TEST(DataRole, ARewardIsIntroducedOnceAndGetsTheColumnsThatItReads) {
  DataStage stage(options_of({kRight, kShort}));
  const auto right = stage.reward("reward/right", numbers_times(1));
  right->reads = {false, {"tests", "not there"}, false, true};
  const auto brief = stage.reward("reward/short", numbers_times(1));
  const auto tickets = stage.issue(0, 3);
  auto first = stage.begin(delivery(tickets[0], 2));
  auto second = stage.begin(delivery(tickets[1], 2));  // while the reward is being introduced
  stage.run(1ms);
  ASSERT_TRUE(stage.ask(delivery(tickets[2], 2)));
  ASSERT_TRUE(stage.ask(await(0)));
  ASSERT_EQ(right->calls.size(), 3u);
  for (const Score& call : right->calls) {
    const std::string row = call.group.prompt.substr(1);
    EXPECT_EQ(call.group.columns, R"({"tests":["t)" + row + R"("]})");
    EXPECT_FALSE(call.group.samples[1].tokens.empty());
  }
  for (const Score& call : brief->calls) {
    EXPECT_EQ(call.group.columns, "{}");
    EXPECT_TRUE(call.group.samples[1].tokens.empty());
  }
  EXPECT_EQ(brief->calls.size(), 3u);
  EXPECT_EQ(right->introduced, 1);
  EXPECT_EQ(brief->introduced, 1);
  EXPECT_EQ(stage.amount("failed_groups/reward_error"), 0);
}

TEST(DataRole, ARewardThatIsReplacedByAnotherIsIntroducedAgain) {
  DataStage stage(options_of({kRight}));
  const auto seen = std::make_shared<ChangingCalls::Seen>();
  stage.play("reward/right", std::make_shared<reward::RewardRole>(
                                 RoleContext(), std::make_unique<ChangingCalls>(seen), 1s));
  const auto tickets = stage.issue(0, 3);
  const auto score = [&](std::size_t slot) {
    EXPECT_TRUE(stage.ask(delivery(tickets[slot], 2)));
    stage.run(1s);
  };
  score(0);
  seen->reads.all_columns = true;  // more than it was sent: the group is refused once
  score(1);
  EXPECT_EQ(stage.amount("scorer_retries"), 1);
  seen->reads = {false, {"tests"}};  // less: nothing is missing
  score(2);
  EXPECT_EQ(stage.amount("scorer_retries"), 1);
  const auto statuses = stage.ask(await(0));
  ASSERT_TRUE(statuses);
  EXPECT_EQ(states_of(*statuses), (States{"ready", "ready", "ready"}));
  EXPECT_EQ(seen->columns,
            (States{"{}", R"({"level": 3, "tests": ["t1"]})", R"({"level": 3, "tests": ["t2"]})"}));
}

TEST(DataRole, AnErrorOfARewardFailsTheGroupAndIsNotRepeated) {
  DataStage stage(options_of({kRight, kShort}));
  stage.reward("reward/right", numbers_times(1));
  const auto brief = stage.reward("reward/short", failing(ErrorCode::kData, "it raised"));
  const auto ticket = stage.issue(0, 1)[0];
  ASSERT_TRUE(stage.ask(delivery(ticket, 2)));
  const auto statuses = stage.ask(await(0));
  EXPECT_EQ(states_of(*statuses), (States{"failed"}));
  EXPECT_EQ(statuses->groups[0].cause, "reward short: reward/short: it raised");
  stage.run(5s);
  EXPECT_EQ(brief->calls.size(), 1u);
  EXPECT_EQ(stage.amount("failed_groups/reward_error"), 1);
  EXPECT_EQ(stage.amount("open_groups/failed"), 1);
}

TEST(DataRole, AnswersOfTheWrongLengthFailTheGroup) {
  DataStage stage(options_of({kRight}));
  stage.reward("reward/right", [](const Score&) -> core::Result<Scores> {
    return Scores{{1.0}, {""}};
  });
  ASSERT_TRUE(stage.ask(delivery(stage.issue(0, 1)[0], 2)));
  const auto statuses = stage.ask(await(0));
  ASSERT_TRUE(statuses);
  EXPECT_NE(statuses->groups[0].cause.find("1 answers for 2 samples"), std::string::npos);
}

TEST(DataRole, WhoWaitsHearsHowFarTheGroupsAre) {
  using Seen = std::vector<std::array<std::uint64_t, 3>>;
  Seen seen;
  DataRoleOptions options = options_of({kRight});
  options.watched = [&seen](const GroupCounts& counts) {
    const std::array<std::uint64_t, 3> now = {counts.groups, counts.sampled, counts.scored};
    if (seen.empty() || seen.back() != now) seen.push_back(now);
  };
  DataStage stage(std::move(options));
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto tickets = stage.issue(0, 2);
  EXPECT_EQ(seen, Seen{}) << "nobody waits yet";
  auto waiting = stage.begin(await(0));
  stage.run(1ms);
  right->hold();
  stage.ask(delivery(tickets[1], 2)).value();
  stage.run(1ms);
  stage.ask(delivery(tickets[0], 2)).value();
  stage.run(1ms);
  right->release();
  stage.run(1ms);
  ASSERT_TRUE(waiting.done());
  ASSERT_GE(seen.size(), 3u);
  const Seen first(seen.begin(), seen.begin() + 3);
  EXPECT_EQ(first, (Seen{{2, 0, 0}, {2, 1, 0}, {2, 2, 0}}));
}

TEST(DataRole, AwaitAnswersAtTheFirstFailure) {
  DataStage stage(options_of({kRight}));
  stage.reward("reward/right", [](const Score& request) -> core::Result<Scores> {
    if (request.group.prompt == "p1") return core::fail(ErrorCode::kData, "not this one");
    return numbers_times(1)(request);
  });
  const auto tickets = stage.issue(0, 3);
  auto waiting = stage.begin(await(0));
  stage.ask(delivery(tickets[0], 2)).value();
  stage.run(1s);
  EXPECT_FALSE(waiting.done());
  stage.ask(delivery(tickets[1], 2)).value();
  stage.run(1ms);
  ASSERT_TRUE(waiting.done());
  EXPECT_EQ(states_of(*waiting.value()), (States{"ready", "failed", "issued"}));
  const auto again = stage.reissue(tickets[1]);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->tickets[0], (experience::Ticket{0, 1, 1}));
  auto rest = stage.begin(await(0));
  stage.ask(delivery(tickets[2], 2)).value();
  stage.ask(delivery(again->tickets[0], 2)).value();
  stage.run(1ms);
  ASSERT_TRUE(rest.done());
  EXPECT_EQ(states_of(*rest.value()), (States{"ready", "ready", "ready"}));
}

TEST(DataRole, AwaitOfAnUpdateWithoutTicketsIsAnError) {
  DataStage stage(options_of({kRight}));
  EXPECT_EQ(stage.ask(await(7)).error().code, ErrorCode::kInvalidArgument);
}

TEST(DataRole, AgesReachTheAsker) {
  DataStage stage(options_of({kRight}));
  stage.reward("reward/right", numbers_times(1));
  const auto ticket = stage.issue(5, 1, 3)[0];
  stage.ask(delivery(ticket, 2, {3, 3, 4})).value();
  const auto statuses = stage.ask(await(5, {2, 3, 4}));
  ASSERT_TRUE(statuses);
  EXPECT_EQ(statuses->staleness, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(statuses->crossed, 2u);
}

TEST(DataRole, NobodyIsAskedForAGroupThatHasFailed) {
  DataStage stage(options_of({kRight, kShort}));
  stage.reward("reward/right", failing(ErrorCode::kData, "no"));
  const auto brief = stage.reward("reward/short", failing(ErrorCode::kOverloaded, "full"));
  stage.ask(delivery(stage.issue(0, 1)[0], 2)).value();
  stage.run(10s);
  EXPECT_LE(brief->calls.size(), 2u);
  EXPECT_EQ(stage.amount("failed_groups/reward_error"), 1);
  EXPECT_EQ(stage.amount("failed_groups/reward_gone"), 0);
}

TEST(DataRole, AReferenceThatIsAwayIsAwaitedAndAWrongAnswerFails) {
  auto options = options_of({kRight});
  options.scoring.with_reference = true;
  DataStage stage(options);
  stage.reward("reward/right", numbers_times(1));
  const auto tickets = stage.issue(0, 2);
  stage.ask(delivery(tickets[0], 2)).value();
  stage.run(5s);
  bool short_answers = false;
  const auto reference = std::make_shared<ScriptedReference>(
      &stage.time, [&short_answers](const ScoreLogprobs& request) -> core::Result<Logprobs> {
        Logprobs reply;
        for (const auto& response : request.responses) {
          reply.samples.emplace_back(response.size() - (short_answers ? 1 : 0), -2.0f);
        }
        return reply;
      });
  stage.play("reference/0", reference);
  stage.run(2s);
  EXPECT_EQ(stage.amount("open_groups/ready"), 1);
  short_answers = true;
  stage.ask(delivery(tickets[1], 2)).value();
  stage.run(1s);
  EXPECT_EQ(stage.amount("failed_groups/reference"), 1);
}

TEST(DataRole, AScorerIsAskedForSoManyGroupsAtATime) {
  DataStage stage(options_of({kRight}));
  const auto right = stage.reward("reward/right", numbers_times(1));
  right->delay = 10ms;
  const auto tickets = stage.issue(0, 300);
  for (const auto& ticket : tickets)
    stage.begin(delivery(ticket, 2));
  const auto statuses = stage.ask(await(0));
  ASSERT_TRUE(statuses);
  EXPECT_EQ(states_of(*statuses), States(300, "ready"));
  EXPECT_EQ(right->most_inside, static_cast<int>(limits::kRewardCalls_max));
  EXPECT_EQ(right->calls.size(), 300u);
}

TEST(DataRole, DoubledAndLateDeliveriesAreAcknowledgedAndScoredOnce) {
  DataStage stage(options_of({kRight}));
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto tickets = stage.issue(0, 2);
  const auto again = stage.reissue(tickets[1])->tickets[0];
  EXPECT_TRUE(stage.ask(delivery(tickets[0], 2)));
  EXPECT_TRUE(stage.ask(delivery(tickets[0], 2)));
  EXPECT_TRUE(stage.ask(delivery(tickets[1], 2)));
  EXPECT_TRUE(stage.ask(delivery(again, 2)));
  ASSERT_TRUE(stage.ask(await(0)));
  EXPECT_TRUE(stage.ask(CommitUpdate{0, 1}));
  EXPECT_TRUE(stage.ask(CommitUpdate{0, 1}));
  EXPECT_FALSE(stage.ask(IssueTickets{0, 2}));
  EXPECT_TRUE(stage.ask(delivery(again, 2)));
  EXPECT_EQ(right->calls.size(), 2u);
  EXPECT_EQ(stage.amount("duplicate_groups/repeated"), 1);
  EXPECT_EQ(stage.amount("duplicate_groups/replaced"), 1);
  EXPECT_EQ(stage.amount("duplicate_groups/closed"), 1);
  EXPECT_EQ(stage.amount("put_tokens"), 8);
}

TEST(DataRole, StaleAndMisshapenDeliveriesAreErrorsOfTheGenerator) {
  DataStage stage(options_of({kRight}, 3));
  stage.reward("reward/right", numbers_times(1));
  const auto ticket = stage.issue(4, 1, 2)[0];
  EXPECT_EQ(stage.ask(delivery(ticket, 3, {2, 1})).error().code, ErrorCode::kData);
  EXPECT_EQ(stage.ask(delivery(ticket, 2, {2})).error().code, ErrorCode::kData);
  auto uneven = delivery(ticket, 3, {2});
  uneven.samples[0].behaviour.push_back(0);
  EXPECT_FALSE(stage.ask(uneven));
  EXPECT_EQ(stage.amount("stale_refused"), 1);
  auto cut = delivery(ticket, 2, {2});
  cut.cut = true;
  EXPECT_TRUE(stage.ask(cut));
  EXPECT_EQ(stage.amount("cut_groups"), 1);
  EXPECT_EQ(stage.ask(await(4))->groups[0].samples, 2u);
}

TEST(DataRole, ReissueIsAllOrNothing) {
  DataStage stage(options_of({kRight}));
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto tickets = stage.issue(0, 2);
  stage.ask(delivery(tickets[1], 2)).value();
  ReissueTickets both;
  both.tickets = tickets;
  const auto refused = stage.ask(both);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("prompt 2"), std::string::npos);
  EXPECT_EQ(stage.issue(0, 2), std::vector{tickets[0]}) << "the other has its samples";
}

TEST(DataRole, ASavedStateGivesTheSamePromptsToTheSameTickets) {
  std::string pattern = (std::filesystem::temp_directory_path() / "data_role_XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  FetchPrompts fetch;
  std::vector<PromptTask> before, after;
  {
    DataStage stage(options_of({kRight}));
    stage.reward("reward/right", numbers_times(1));
    const auto first = stage.issue(0, 1);
    stage.issue(1, 2);
    const auto second = stage.issue(2, 2);
    fetch.tickets = {{1, 0, 0}, stage.reissue({1, 1, 0})->tickets[0], second[0], second[1]};
    stage.ask(delivery(second[1], 2)).value();  // done, but not committed
    before = stage.ask(fetch)->tasks;
    stage.ask(delivery(first[0], 2)).value();
    ASSERT_TRUE(stage.ask(await(0)));
    ASSERT_TRUE(stage.ask(CommitUpdate{0, 1}));
    // After the commit: taken back by the resume.
    stage.issue(3, 2);
    ASSERT_TRUE(stage.reissue({2, 0, 0}));
    ASSERT_TRUE(stage.ask(SaveState{folder.string()}));
  }
  DataStage stage(options_of({kRight}));
  ASSERT_TRUE(stage.ask(LoadState{folder.string()}));
  EXPECT_EQ(stage.issue(1, 2)[1], fetch.tickets[1]);
  stage.issue(2, 2);
  after = stage.ask(fetch)->tasks;
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].prompt, before[i].prompt);
    EXPECT_EQ(after[i].seed, before[i].seed);
    EXPECT_EQ(after[i].samples, before[i].samples);
  }
  fetch.tickets = stage.issue(3, 2);
  EXPECT_EQ(stage.ask(fetch)->tasks[0].prompt, 6u);
  EXPECT_FALSE(stage.ask(LoadState{folder.string()}));  // too late
  std::filesystem::remove_all(folder);
}

}  // namespace troupe::actors::data
