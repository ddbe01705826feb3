// Samples that leave their group for want of a score, and groups that are long or too long.
#include "runtime/core/group_bytes.hpp"
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::actors::data {
namespace {

using namespace test;

DataRoleOptions groups_of(std::int32_t samples) {
  DataRoleOptions options;
  options.samples = samples;
  options.rewards = {kRightOnce};
  return options;
}

// Samples of so many tokens each, with a text of one byte.
PutGroup long_delivery(const experience::Ticket& ticket, const std::vector<std::size_t>& tokens) {
  PutGroup put = delivery(ticket, static_cast<int>(tokens.size()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    put.samples[i].tokens.assign(tokens[i], 7);
    put.samples[i].behaviour.assign(tokens[i], -1.0f);
    put.samples[i].versions = experience::VersionRuns::all(0, tokens[i]);
  }
  return put;
}

}  // namespace

TEST(DataRoleSamples, AMissingScoreIsOneLineWithSampleAndCauseAndCounted) {
  NotedStage noted(groups_of(4));
  DataStage& stage = noted.stage;
  stage.reward("reward/right", [](const Score&) -> core::Result<Scores> {
    return Scores{{1.0, std::nullopt, 2.0, std::numeric_limits<double>::quiet_NaN()},
                  {"", "the label 'x' holds no number", "", ""},
                  {}};
  });
  const auto tickets = stage.issue(0, 3);
  stage.ask(delivery(tickets[0], 4)).value();
  stage.run(1s);
  ASSERT_EQ(noted.notes.size(), 1u);
  EXPECT_EQ(noted.notes[0], name_of(tickets[0]) +
                                ", sample 2 has no score: reward right: the label 'x' holds no "
                                "number");
  stage.ask(delivery(tickets[1], 4)).value();
  stage.run(1s);
  EXPECT_EQ(noted.notes.size(), 1u) << "one line a minute";
  stage.run(60s);
  stage.ask(delivery(tickets[2], 4)).value();
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses);
  ASSERT_EQ(noted.notes.size(), 2u);
  EXPECT_NE(noted.notes[1].find("(and 3 more before it)"), std::string::npos) << noted.notes[1];
  for (const GroupStatus& group : statuses->groups) {
    EXPECT_EQ(group.samples, 2u);
    EXPECT_EQ(group.missing, 2u);
  }
  EXPECT_EQ(stage.amount("dropped_samples"), 6);
}

TEST(DataRoleSamples, MissingScoresOfAReplacedGroupCountForItsSlot) {
  NotedStage noted(groups_of(2));
  DataStage& stage = noted.stage;
  const auto right = stage.reward("reward/right", [](const Score&) -> core::Result<Scores> {
    return Scores{{1.0, std::nullopt}, {"", "null"}, {}};
  });
  const auto ticket = stage.issue(0, 1)[0];
  stage.ask(delivery(ticket, 2)).value();
  EXPECT_EQ(stage.ask(AwaitGroups{0, {}})->groups[0].missing, 1u);
  right->answer = numbers_times(1);
  stage.ask(delivery(stage.reissue(ticket)->tickets[0], 2)).value();
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  EXPECT_TRUE(statuses->groups[0].ready());
  EXPECT_EQ(statuses->groups[0].missing, 1u);
}

// What is counted is never less than what the message has.
TEST(DataRoleSamples, TheBoundHoldsForTheEncoding) {
  for (const std::size_t tokens : {1u, 7u, 1000u, 100'000u}) {
    PutGroup put = long_delivery({1, 2, 3}, {tokens, tokens, tokens});
    for (auto& sample : put.samples)
      sample.text.assign(3 * tokens + 1, 'x');
    wire::Header header;
    header.sender = "generator/12345";
    const std::uint64_t text = 3 * (3 * tokens + 1);
    EXPECT_LE(to_frame(header, put)->size_bytes(), core::group_bytes(0, 3, 3 * tokens, text))
        << tokens;
    ExperiencePage page;
    page.groups.push_back({{1, 2, 3}, std::vector<std::int32_t>(11, 1), put.samples});
    for (auto& sample : page.groups[0].samples) {
      sample.text.clear();
      sample.reference.assign(tokens, -1.0f);
      sample.score = 1;
    }
    EXPECT_LE(to_frame(header, page)->size_bytes(), core::group_bytes(11, 3, 3 * tokens, 0))
        << tokens;
    Score score;
    score.sent.tokens = true;
    for (const auto& sample : put.samples)
      score.group.samples.push_back({sample.text, sample.tokens});
    EXPECT_LE(to_frame(header, score)->size_bytes(), core::group_bytes(0, 3, 3 * tokens, text))
        << tokens;
  }
}

// 6 MB from the generator, to the reward and to the policy; a page holds one such group.
TEST(DataRoleSamples, AGroupIsNotBoundByAFrame) {
  NotedStage noted(groups_of(3));
  DataStage& stage = noted.stage;
  const auto right = stage.reward("reward/right", [](const Score& request) -> core::Result<Scores> {
    Scores scores;
    for (const RewardSample& sample : request.group.samples)
      scores.values.emplace_back(static_cast<double>(sample.response.size()));
    scores.causes.assign(scores.values.size(), "");
    return scores;
  });
  const auto tickets = stage.issue(0, 2);
  for (const auto& ticket : tickets) {
    PutGroup put = long_delivery(ticket, {131'072, 131'072, 100'000});
    for (auto& sample : put.samples)
      sample.text.assign(4 * sample.tokens.size(), 'x');
    ASSERT_TRUE(stage.ask(std::move(put)));
  }
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses) << statuses.error().message;
  EXPECT_EQ(statuses->groups[1].tokens, 362'144u);
  EXPECT_EQ(statuses->groups[1].mean_score, 4 * 362'144 / 3.0);
  const auto page = stage.ask(FetchExperience{0, {1, 0}});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->groups.size(), 1u);
  EXPECT_EQ(page->groups[0].ticket.slot, 1u);
  EXPECT_EQ(page->groups[0].samples[1].tokens.size(), 131'072u);
  EXPECT_EQ(page->groups[0].samples[1].text, "");
  EXPECT_EQ(noted.notes.size(), 0u);
}

TEST(DataRoleSamples, ATicketThatIsSetAsideFailsWithItsPromptAndIsReplaced) {
  NotedStage noted(groups_of(2));
  DataStage& stage = noted.stage;
  stage.reward("reward/right", numbers_times(1));
  const auto tickets = stage.issue(0, 2);
  const SetAside request{tickets[1], "it failed 3 times"};
  ASSERT_TRUE(stage.ask(request));
  ASSERT_TRUE(stage.ask(request)) << "a second time nothing happens";
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses);
  EXPECT_EQ(statuses->groups[0].state, GroupState::kIssued);
  EXPECT_EQ(statuses->groups[1].state, GroupState::kFailed);
  EXPECT_EQ(statuses->groups[1].cause, "row 1, which begins \"p1\": it failed 3 times");
  EXPECT_EQ(stage.amount("failed_groups/set_aside"), 1);
  // The samples of the old ticket are of no use any more; those of the new one are.
  ASSERT_TRUE(stage.ask(delivery(tickets[1], 2)));
  EXPECT_EQ(stage.amount("duplicate_groups/failed"), 1);
  ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
  const auto again = stage.reissue(tickets[1]);
  ASSERT_TRUE(again);
  ASSERT_TRUE(stage.ask(SetAside{tickets[1], "late"})) << "of a ticket that is not open any more";
  ASSERT_TRUE(stage.ask(delivery(again->tickets[0], 2)));
  EXPECT_TRUE(stage.ask(AwaitGroups{0, {}})->groups[1].ready());
}

TEST(DataRoleSamples, AGroupThatIsTooLongIsReplaced) {
  NotedStage noted(groups_of(2));
  DataStage& stage = noted.stage;
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto ticket = stage.issue(0, 1)[0];
  PutGroup put = delivery(ticket, 0);
  put.too_long = 2;
  ASSERT_TRUE(stage.ask(put));
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses);
  EXPECT_EQ(statuses->groups[0].state, GroupState::kFailed);
  EXPECT_NE(
      statuses->groups[0].cause.find("its 2 samples are longer than the 67108864 bytes of a group"),
      std::string::npos);
  EXPECT_EQ(stage.amount("failed_groups/too_long"), 1);
  EXPECT_EQ(stage.amount("too_long_samples"), 2);
  EXPECT_EQ(right->calls.size(), 0u);
  stage.ask(delivery(stage.reissue(ticket)->tickets[0], 2)).value();
  EXPECT_TRUE(stage.ask(AwaitGroups{0, {}})->groups[0].ready());
}

}  // namespace troupe::actors::data
