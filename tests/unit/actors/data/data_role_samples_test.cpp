// Samples that leave their group: for want of a score, or because the group is too long for a
// frame. Each is counted and told, a group that keeps two is learned from.
#include "actors/protocol/group_fit.hpp"
#include "runtime/core/group_bytes.hpp"
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::actors {
namespace {

using namespace test;

DataRoleOptions groups_of(std::int32_t samples) {
  DataRoleOptions options;
  options.samples = samples;
  options.rewards = {kRightOnce};
  return options;
}

// Samples of so many tokens each, with a text of one byte.
PutGroup long_delivery(const core::Ticket& ticket, const std::vector<std::size_t>& tokens) {
  PutGroup put = delivery(ticket, static_cast<int>(tokens.size()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    put.samples[i].tokens.assign(tokens[i], 7);
    put.samples[i].behaviour.assign(tokens[i], -1.0f);
    put.samples[i].versions.assign(tokens[i], 0);
  }
  return put;
}

std::vector<std::size_t> lengths(const PutGroup& group) {
  std::vector<std::size_t> found;
  for (const auto& sample : group.samples)
    found.push_back(sample.tokens.size());
  return found;
}

}  // namespace

TEST(DataRoleSamples, AMissingScoreIsOneLineWithSampleAndCauseAndCounted) {
  NotedStage noted(groups_of(4));
  DataStage& stage = noted.stage;
  stage.reward("reward/right", [](const Score&) -> core::Result<Scores> {
    return Scores{{1.0, std::nullopt, 2.0, std::numeric_limits<double>::quiet_NaN()},
                  {"", "the label 'x' holds no number", "", ""},
                  {},
                  std::nullopt};
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
    return Scores{{1.0, std::nullopt}, {"", "null"}, {}, std::nullopt};
  });
  const auto ticket = stage.issue(0, 1)[0];
  stage.ask(delivery(ticket, 2)).value();
  EXPECT_EQ(stage.ask(AwaitGroups{0, {}})->groups[0].missing, 1u);
  right->answer = numbers_times(1);
  stage.ask(delivery(stage.reissue(ticket)->tickets[0], 2)).value();
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  EXPECT_TRUE(statuses->groups[0].ready);
  EXPECT_EQ(statuses->groups[0].missing, 1u);
}

// A frame has 1,048,064 bytes for samples of 128 and 16 a token (and a text).
TEST(DataRoleSamples, TheLongestSamplesOfAGroupThatIsTooLongAreLeftOut) {
  PutGroup put = long_delivery({0, 0, 0}, {20'000, 9'000, 30'000, 20'000, 1});
  fit_frame(put);
  EXPECT_EQ(lengths(put), (std::vector<std::size_t>{20'000, 9'000, 20'000, 1}));
  EXPECT_EQ(put.dropped, 1u);
  const auto frame = to_frame(wire::Header{}, put);
  ASSERT_TRUE(frame) << frame.error().message;
  EXPECT_GT(frame->size_bytes(), 700'000u);

  PutGroup fits = long_delivery({0, 0, 0}, {32'000, 33'000});
  fit_frame(fits);
  EXPECT_EQ(fits.dropped, 0u);
  EXPECT_TRUE(to_frame(wire::Header{}, fits));

  PutGroup hopeless = long_delivery({0, 0, 0}, {40'000, 40'000, 40'000});
  fit_frame(hopeless);
  EXPECT_EQ(hopeless.samples.size(), 0u);
  EXPECT_EQ(hopeless.dropped, 3u);
}

// What is counted is never less than what the message has.
TEST(DataRoleSamples, TheBoundsHoldForTheEncoding) {
  for (const std::size_t tokens : {1u, 7u, 1000u, 10'000u}) {
    PutGroup put = long_delivery({1, 2, 3}, {tokens, tokens, tokens});
    std::uint64_t bound = core::kGroupRest_bytes;
    for (auto& sample : put.samples) {
      sample.kept_mass.assign(tokens, 0.5f);
      sample.text.assign(3 * tokens + 1, 'x');
      bound += core::delivered_bytes(tokens, sample.text.size(), true);
    }
    wire::Header header;
    header.sender = "generator/12345";
    EXPECT_LE(to_frame(header, put)->size_bytes(), bound) << tokens;
    ExperiencePage page;
    page.groups.push_back({{1, 2, 3}, std::vector<std::int32_t>(11, 1), {}});
    for (int i = 0; i < 3; ++i) {
      page.groups[0].samples.push_back(
          {std::vector<std::int32_t>(tokens, 1), std::vector<float>(tokens, 1),
           std::vector<core::Version>(tokens, 1), std::vector<float>(tokens, 1), 1.0, "length"});
    }
    const std::uint64_t page_bound =
        core::kGroupRest_bytes + 44 + 3 * core::experience_bytes(tokens, true);
    EXPECT_LE(to_frame(header, page)->size_bytes(), page_bound) << tokens;
    Score score;
    score.prompt.assign(11, 'p');
    score.sent.columns = {"tests"};
    score.sent.tokens = true;
    score.columns.assign(100, 'c');
    score.messages.assign(50, 'm');
    for (int i = 0; i < 3; ++i)
      score.items.push_back({std::string(2 * tokens, 'x'), std::vector<std::int32_t>(tokens, 1)});
    const std::uint64_t score_bound =
        core::kGroupRest_bytes + 161 + 3 * core::scored_bytes(tokens, 2 * tokens);
    EXPECT_LE(to_frame(header, score)->size_bytes(), score_bound) << tokens;
  }
}

TEST(DataRoleSamples, AGroupIsCutToWhatThePolicyCanFetch) {
  auto options = groups_of(3);
  options.with_reference = true;  // 20 bytes a token on the way to the policy, 16 on the way here
  NotedStage noted(options);
  DataStage& stage = noted.stage;
  stage.reward("reward/right", [](const Score& request) -> core::Result<Scores> {
    Scores scores;
    scores.values.assign(request.items.size(), 1.0);
    scores.causes.assign(request.items.size(), "");
    return scores;
  });
  stage.play("reference/0",
             std::make_shared<ScriptedReference>(
                 &stage.time, [](const ScoreLogprobs& request) -> core::Result<Logprobs> {
                   Logprobs reply;
                   for (const auto& response : request.responses)
                     reply.samples.emplace_back(response.size(), -2.0f);
                   return reply;
                 }));
  const auto tickets = stage.issue(0, 1);
  PutGroup put = long_delivery(tickets[0], {20'000, 20'500, 20'000});
  fit_frame(put);
  EXPECT_EQ(put.dropped, 0u);
  ASSERT_TRUE(stage.ask(put));
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses) << statuses.error().message;
  EXPECT_EQ(statuses->groups[0].samples, 2u);
  EXPECT_EQ(statuses->groups[0].tokens, 40'000u);
  const auto page = stage.ask(FetchExperience{0, 0});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->groups[0].samples.size(), 2u);
  EXPECT_EQ(stage.amount("too_long_samples"), 1);
  ASSERT_EQ(noted.notes.size(), 1u);
  EXPECT_NE(noted.notes[0].find("1 of 3 samples did not fit a frame"), std::string::npos);
  EXPECT_NE(noted.notes[0].find("--rollout.max_new_tokens"), std::string::npos);
}

TEST(DataRoleSamples, AGroupOfWhichNothingFitsIsReplaced) {
  NotedStage noted(groups_of(2));
  DataStage& stage = noted.stage;
  const auto right = stage.reward("reward/right", numbers_times(1));
  const auto ticket = stage.issue(0, 1)[0];
  PutGroup put = delivery(ticket, 0);
  put.dropped = 2;
  ASSERT_TRUE(stage.ask(put));
  const auto statuses = stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses);
  EXPECT_EQ(statuses->groups[0].state, "failed");
  EXPECT_NE(statuses->groups[0].cause.find("2 of 2 samples did not fit"), std::string::npos);
  EXPECT_EQ(stage.amount("failed_groups/too_long"), 1);
  EXPECT_EQ(right->calls.size(), 0u);
  stage.ask(delivery(stage.reissue(ticket)->tickets[0], 2)).value();
  EXPECT_TRUE(stage.ask(AwaitGroups{0, {}})->groups[0].ready);
}

}  // namespace troupe::actors
