// Groups of episodes at the data role: counted, checked, scored by what came with them, kept with
// their prompt, and read back from a log.
#include "actors/data/group_experience.hpp"
#include "actors/data/sample_scores.hpp"
#include "actors/protocol/frames.hpp"
#include "runtime/core/group_bytes.hpp"
#include "runtime/experience/row.hpp"
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;
using experience::Shares;
using experience::StepReward;
using experience::Trajectory;
using Ids = std::vector<std::int32_t>;

const RewardMember kEpisodeFeedback{"feedback", kFeedbackPeer, 2};

Trajectory episode_sample(Ids tokens, std::vector<experience::Turn> turns, std::uint32_t episode) {
  Trajectory sample;
  sample.behaviour.assign(tokens.size(), -1.0f);
  sample.versions = experience::VersionRuns::all(0, tokens.size());
  sample.text = std::to_string(tokens[0]);
  sample.tokens = std::move(tokens);
  sample.turns = std::move(turns);
  sample.episode = episode;
  return sample;
}

// Two episodes, of which the first forks, with feedback; behind a prompt of their own.
PutGroup episodes_for(const experience::Ticket& ticket) {
  PutGroup put;
  put.ticket = ticket;
  put.prompt = {5, 6};
  put.samples = {episode_sample({10, 11, 12}, {{0, {}}, {2, {50}}}, 1),
                 episode_sample({20}, {{0, {10, 11, 51}}}, 1),
                 episode_sample({30}, {{0, {52}}}, 2)};
  put.samples[1].shares = Shares{0, 2};
  put.samples[0].feedback = 1;
  put.samples[1].feedback = 0.5;
  put.samples[2].feedback = 0;
  put.samples[0].feedback_steps = {{1, 0.25}};
  put.samples[0].facts.log_kept_mass = {0, -0.5f, -1.25f};
  return put;
}

DataRoleOptions episode_options(std::vector<RewardMember> rewards, bool reference = false) {
  DataRoleOptions options;
  options.samples = 2;
  options.rewards = std::move(rewards);
  options.scoring.with_reference = reference;
  return options;
}

experience::Group episode_group(DataStage& stage, std::uint64_t update = 0) {
  auto page = stage.ask(FetchExperience{update, {0}});
  EXPECT_TRUE(page) << page.error().message;
  return page ? page->groups.at(0) : experience::Group{};
}

}  // namespace

TEST(DataRoleEpisodes, FeedbackScoresThemWithoutACall) {
  NotedStage noted(episode_options({kEpisodeFeedback}));
  const auto ticket = noted.stage.issue(0, 1)[0];
  noted.stage.ask(episodes_for(ticket)).value();
  const auto statuses = noted.stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses) << statuses.error().message;
  ASSERT_TRUE(statuses->groups[0].ready());
  EXPECT_EQ(statuses->groups[0].samples, 3u);
  EXPECT_EQ(statuses->groups[0].tokens, 5u);
  // Leaves of 2 * (1 + 0.25) and 2 * (0.5 + 0.25), one episode; and 0.
  EXPECT_EQ(statuses->groups[0].mean_score, 1.0);
  EXPECT_EQ(statuses->rewards,
            (std::vector<std::pair<std::string, double>>{{"feedback", (1.25 + 0.75 + 0) / 3}}));
  const experience::Group group = episode_group(noted.stage);
  EXPECT_EQ(group.prompt, (Ids{5, 6}));
  ASSERT_EQ(group.samples.size(), 3u);
  EXPECT_EQ(group.samples[0].score, 2);
  EXPECT_EQ(group.samples[0].steps, (std::vector<StepReward>{{1, 0.5}}));
  EXPECT_EQ(group.samples[1].score, 1);
  EXPECT_EQ(group.samples[1].shares, (Shares{0, 2}));
  EXPECT_EQ(group.samples[1].turns[0].context, (Ids{10, 11, 51}));
  EXPECT_EQ(group.samples[2].episode, 2u);
  EXPECT_TRUE(group.samples[0].facts.empty()) << "no policy learns from the kept mass";
  EXPECT_FALSE(group.samples[0].feedback) << "it is in the score";
  EXPECT_TRUE(group.samples[0].feedback_steps.empty());
}

TEST(DataRoleEpisodes, OtherRewardsScoreBesideIt) {
  DataRoleOptions options = episode_options({kRight, kEpisodeFeedback});
  options.reward_formula = "min(right, feedback)";
  NotedStage noted(std::move(options));
  noted.stage.reward("reward/right", numbers_times(0.01));
  noted.stage.ask(episodes_for(noted.stage.issue(0, 1)[0])).value();
  ASSERT_TRUE(noted.stage.ask(AwaitGroups{0, {}})->groups[0].ready());
  const experience::Group group = episode_group(noted.stage);
  // A formula that names the feedback reads all of it: 2.5, 1.5 and 0 against 0.2, 0.4 and 0.6.
  EXPECT_EQ(group.samples[0].score, 2 * 0.01 * 10);
  EXPECT_EQ(group.samples[1].score, 2 * 0.01 * 20);
  EXPECT_EQ(group.samples[2].score, 0);
  EXPECT_TRUE(group.samples[0].steps.empty());
}

TEST(DataRoleEpisodes, AFormulaOverColumnsScoresFeedback) {
  DataRoleOptions options = episode_options({kEpisodeFeedback});
  options.reward_formula = "domain(level, 3: 4 * feedback, other: feedback)";
  NotedStage noted(std::move(options));
  noted.stage.ask(episodes_for(noted.stage.issue(0, 1)[0])).value();
  ASSERT_TRUE(noted.stage.ask(AwaitGroups{0, {}})->groups[0].ready());
  EXPECT_EQ(episode_group(noted.stage).samples[0].score, 4 * 2 * 1.25);
}

// Turns alone are feedback, too; a sample without any is none, and takes its episode with it.
TEST(DataRoleEpisodes, AnEpisodeWithoutFeedbackIsLeftOutWhole) {
  DataRoleOptions options = episode_options({kEpisodeFeedback});
  options.samples = 3;
  NotedStage noted(std::move(options));
  PutGroup put = episodes_for(noted.stage.issue(0, 1)[0]);
  put.samples.insert(put.samples.begin(), episode_sample({7}, {}, 0));
  put.samples[2].shares = Shares{1, 2};
  put.samples[0].feedback_steps = {{0, 1.5}};
  put.samples[2].feedback.reset();
  put.samples[1].feedback_steps.clear();
  noted.stage.ask(put).value();
  const auto statuses = noted.stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses->groups[0].ready()) << statuses->groups[0].cause;
  EXPECT_EQ(statuses->groups[0].missing, 1u);
  EXPECT_EQ(noted.stage.amount("dropped_samples"), 2);
  const experience::Group group = episode_group(noted.stage);
  ASSERT_EQ(group.samples.size(), 2u);
  EXPECT_EQ(group.samples[0].tokens, (Ids{7}));
  EXPECT_EQ(group.samples[0].score, 0);
  EXPECT_EQ(group.samples[0].steps, (std::vector<StepReward>{{0, 3}}));
  EXPECT_EQ(group.samples[1].tokens, (Ids{30}));
  ASSERT_EQ(noted.notes.size(), 1u);
  EXPECT_NE(
      noted.notes[0].find("sample 3 has no score: reward feedback: none came with the episode"),
      std::string::npos)
      << noted.notes[0];
}

TEST(DataRoleEpisodes, EpisodesAreCountedAgainstTheGroupsSize) {
  NotedStage noted(episode_options({kEpisodeFeedback}));
  const auto ticket = noted.stage.issue(0, 1)[0];
  PutGroup put = episodes_for(ticket);
  put.samples.pop_back();
  const auto refused = noted.stage.ask(put);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("1 episodes came for a group of 2"), std::string::npos)
      << refused.error().message;
  put = episodes_for(ticket);
  put.samples[1].turns[0].context[0] = 99;
  const auto made_again = noted.stage.ask(put);
  ASSERT_FALSE(made_again);
  EXPECT_EQ(made_again.error().code, ErrorCode::kData);
  EXPECT_NE(made_again.error().message.find("its first context is not the 2 ids"),
            std::string::npos)
      << made_again.error().message;
  EXPECT_TRUE(noted.stage.ask(episodes_for(ticket))) << "the group still waits";
}

// A row is the prompt of 2 and 4 ids here; the policy has room for less. The slot is issued again.
TEST(DataRoleEpisodes, ARowThatThePolicyCannotLearnFromFailsItsGroup) {
  DataRoleOptions options = episode_options({kEpisodeFeedback});
  options.row_tokens_max = 5;
  NotedStage noted(std::move(options));
  const auto ticket = noted.stage.issue(0, 1)[0];
  noted.stage.ask(episodes_for(ticket)).value();
  const auto statuses = noted.stage.ask(AwaitGroups{0, {}});
  EXPECT_EQ(statuses->groups[0].cause,
            "a sample has 6 tokens with its prompt, and the policy learns from 5 at most; raise "
            "--train.micro_tokens_max, or bound the turns of the environment");
  const auto again = noted.stage.reissue(ticket)->tickets[0];
  PutGroup put = episodes_for(again);
  put.prompt = {5};
  noted.stage.ask(put).value();
  EXPECT_TRUE(noted.stage.ask(AwaitGroups{0, {}})->groups[0].ready());
}

TEST(DataRoleEpisodes, FrozenModelsSeeRowsAndGiveDrawnTokensAlone) {
  NotedStage noted(episode_options({kEpisodeFeedback}, true));
  auto reference = std::make_shared<ScriptedReference>(
      &noted.stage.time, [](const ScoreLogprobs& request) -> core::Result<Logprobs> {
        Logprobs reply;
        for (std::size_t i = 0; i < request.responses.size(); ++i)
          reply.samples.emplace_back(request.wanted(i), -2.0f);
        return reply;
      });
  noted.stage.play("reference/0", reference);
  noted.stage.ask(episodes_for(noted.stage.issue(0, 1)[0])).value();
  ASSERT_TRUE(noted.stage.ask(AwaitGroups{0, {}})->groups[0].ready());
  ASSERT_EQ(reference->calls.size(), 1u);
  const ScoreLogprobs& asked = reference->calls[0];
  EXPECT_EQ(asked.prompt, (Ids{5, 6}));
  EXPECT_EQ(asked.responses, (std::vector<Ids>{{10, 11, 50, 12}, {10, 11, 51, 20}, {52, 30}}));
  EXPECT_EQ(asked.targets, (std::vector<std::vector<std::uint32_t>>{{0, 1, 3}, {3}, {1}}));
  EXPECT_EQ(episode_group(noted.stage).samples[1].reference, (std::vector<float>{-2}));
}

// What a book tells its log makes the same group again.
TEST(DataRoleEpisodes, ALogHasThemToTheBit) {
  struct Kept final : BookListener {
    void on_event(const BookEvent& event) override {
      auto read = event_of(record_of(event));
      ASSERT_TRUE(read) << read.error().message;
      events.push_back(std::move(*read));
    }
    std::vector<BookEvent> events;
  } kept;
  const RewardSetPtr rewards = make_set(0, {kEpisodeFeedback});
  TicketBook book(2, FrozenModels());
  book.when_changed(&kept);
  const auto ticket = book.issue({0, 1, 0, 0}, rewards)[0];
  PutGroup put = episodes_for(ticket);
  ASSERT_TRUE(book.put_samples(ticket, put.samples, false, put.prompt));
  const GroupScored given = feedback_scores(*book.find(ticket), 0);
  ASSERT_TRUE(book.put_scores({ticket, 0, given.scores, given.causes, {}, "", given.steps}));
  TicketBook again(2, FrozenModels());
  again.replay(0, kept.events, [&](std::uint64_t) { return rewards; });
  const BookGroup* const read = again.find(ticket);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->state, GroupState::kReady);
  EXPECT_EQ(read->begins_with, (Ids{5, 6}));
  const auto& before = book.find(ticket)->samples;
  ASSERT_EQ(read->samples.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(read->samples[i].turns, before[i].turns) << i;
    EXPECT_EQ(read->samples[i].episode, before[i].episode) << i;
    EXPECT_EQ(read->samples[i].shares, before[i].shares) << i;
    EXPECT_EQ(read->samples[i].feedback, before[i].feedback) << i;
    EXPECT_EQ(read->samples[i].facts.log_kept_mass, before[i].facts.log_kept_mass) << i;
    EXPECT_EQ(read->samples[i].feedback_steps, before[i].feedback_steps) << i;
    EXPECT_EQ(read->samples[i].score, before[i].score) << i;
    EXPECT_EQ(read->samples[i].steps, before[i].steps) << i;
  }
}

TEST(DataRoleEpisodes, TheBoundHoldsForTheEncoding) {
  wire::Header header;
  header.sender = "environment/12345";
  for (const std::size_t turns : {1u, 3u, 200u}) {
    PutGroup put;
    put.prompt = {1, 2, 3};
    std::uint64_t bytes = 0, tokens = 0;
    for (std::uint32_t i = 0; i < 3; ++i) {
      std::vector<experience::Turn> list;
      for (std::uint32_t t = 0; t < turns; ++t)
        list.push_back({2 * t, Ids(1 + t % 5, 9)});
      put.samples.push_back(episode_sample(Ids(2 * turns, 8), std::move(list), 1 + i));
      put.samples.back().feedback = 1;
      put.samples.back().shares = Shares{0, 1};
      put.samples.back().feedback_steps.assign(turns, {0, 1});
      bytes += experience::turn_bytes(put.samples.back());
      tokens += 2 * turns;
    }
    bytes += core::group_bytes(3, 3, tokens, 3);
    EXPECT_LE(to_frame(header, put)->size_bytes(), bytes) << turns;
  }
}

}  // namespace troupe::actors::data
