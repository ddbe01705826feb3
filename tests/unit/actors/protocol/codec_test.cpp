// Messages keep every field on their way through a frame, and refuse what cannot be meant.
#include "actors/protocol/frames.hpp"
#include "actors/protocol/limits.hpp"
#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/messages_rows.hpp"
#include "runtime/wire/envelope.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::actors {
namespace {

wire::Header header() {
  wire::Header header;
  header.run = core::RunId{7};
  header.request = core::RequestId{1};
  header.sender = "controller/0";
  return header;
}

template <class Message>
Message through_a_frame(const Message& message) {
  auto frame = to_frame(header(), message);
  EXPECT_TRUE(frame) << frame.error().message;
  auto read = from_frame<Message>(*frame);
  EXPECT_TRUE(read) << read.error().message;
  return std::move(read).value();
}

weights::WeightLocation source() {
  return {"host-a", "/run/t/w.sock", "127.0.0.1", 4711, "secret"};
}

TEST(Codec, GenerateKeepsTheOldestVersionAllowed) {
  Generate message;
  message.tickets = {{3, 1, 2}};
  message.sampling.stop = {"\n"};
  message.version_min = 9;
  const Generate read = through_a_frame(message);
  EXPECT_EQ(read.tickets, message.tickets);
  EXPECT_EQ(read.sampling.stop, message.sampling.stop);
  EXPECT_EQ(read.version_min, 9u);
}

experience::Group group_of(experience::Ticket ticket,
                           std::vector<std::int32_t> prompt,
                           std::vector<std::vector<std::int32_t>> responses) {
  experience::Group group{ticket, std::move(prompt), {}};
  for (auto& response : responses)
    group.samples.emplace_back().tokens = std::move(response);
  return group;
}

TEST(Codec, CriticPagesKeepGroupsValuesAndTheirPlace) {
  ScoreValues page;
  page.update = 5;
  page.cursor = 3;
  page.groups = {group_of({5, 3, 1}, {1, 2}, {{4, 5, 6}, {7}}), group_of({5, 4, 0}, {8}, {{9}})};
  const auto read = through_a_frame(page);
  EXPECT_EQ(read.update, 5u);
  EXPECT_EQ(read.cursor, 3u);
  ASSERT_EQ(read.groups.size(), 2u);
  EXPECT_EQ(read.groups[0].ticket, (experience::Ticket{5, 3, 1}));
  EXPECT_EQ(read.groups[0].prompt, (std::vector<std::int32_t>{1, 2}));
  ASSERT_EQ(read.groups[0].samples.size(), 2u);
  EXPECT_EQ(read.groups[0].samples[0].tokens, (std::vector<std::int32_t>{4, 5, 6}));
  EXPECT_EQ(read.groups[0].samples[1].tokens, (std::vector<std::int32_t>{7}));
  EXPECT_EQ(read.groups[1].samples[0].tokens, (std::vector<std::int32_t>{9}));
  PutReturns returns{5, 3, {{{{0.5f, -1}, {2}}}, {{{3}}}}};
  const auto back = through_a_frame(returns);
  EXPECT_EQ(back.update, 5u);
  EXPECT_EQ(back.cursor, 3u);
  ASSERT_EQ(back.groups.size(), 2u);
  EXPECT_EQ(back.groups[0].samples, returns.groups[0].samples);
  const auto values = through_a_frame(CriticValues{returns.groups});
  ASSERT_EQ(values.groups.size(), 2u);
  EXPECT_EQ(values.groups[1].samples, returns.groups[1].samples);
  EXPECT_EQ(through_a_frame(TrainCritic{6, 8}).groups, 8u);
}

TEST(Codec, EpisodesKeepTheirTurnsForksAndFeedback) {
  PutGroup put;
  put.prompt = {3, 4};
  put.samples.resize(2);
  put.samples[0].tokens = {5, 6};
  put.samples[0].turns = {{0, {}}, {1, {7, 8}}};
  put.samples[0].episode = 4;
  put.samples[0].feedback = -0.5;
  put.samples[0].feedback_steps = {{1, 0.25}};
  put.samples[0].facts.log_kept_mass = {0, -0.5f};
  put.samples[1].tokens = {9};
  put.samples[1].shares = experience::Shares{0, 2};
  const auto read = through_a_frame(put);
  EXPECT_EQ(read.prompt, put.prompt);
  EXPECT_EQ(read.samples[0].turns, put.samples[0].turns);
  EXPECT_EQ(read.samples[0].episode, 4u);
  EXPECT_EQ(read.samples[0].shares, std::nullopt);
  EXPECT_EQ(read.samples[0].feedback, -0.5);
  EXPECT_EQ(read.samples[0].facts.log_kept_mass, put.samples[0].facts.log_kept_mass);
  EXPECT_EQ(read.samples[0].feedback_steps, put.samples[0].feedback_steps);
  EXPECT_EQ(read.samples[1].shares, put.samples[1].shares);
  EXPECT_EQ(read.samples[1].feedback, std::nullopt);
  ScoreLogprobs score;
  score.responses = {{1, 2, 3}, {4}};
  score.targets = {{0, 2}, {}};
  const auto asked = through_a_frame(score);
  EXPECT_EQ(asked.targets, score.targets);
  EXPECT_EQ(asked.wanted(0), 2u);
  EXPECT_EQ(asked.wanted(1), 1u) << "an empty list stands for all";
}

TEST(Codec, AGroupSaysThatItWasFiltered) {
  GroupStatuses statuses;
  statuses.groups.resize(2);
  statuses.groups[1].filtered = true;
  const auto read = through_a_frame(statuses);
  EXPECT_FALSE(read.groups[0].filtered);
  EXPECT_TRUE(read.groups[1].filtered);
}

TEST(Codec, UpdateWeightsAndPublishedKeepTheSource) {
  const auto update = through_a_frame(UpdateWeights{5, source(), true});
  EXPECT_EQ(update.version, 5u);
  EXPECT_EQ(update.source, source());
  EXPECT_TRUE(update.recompute_kv);
  const auto published = through_a_frame(Published{6, source()});
  EXPECT_EQ(published.version, 6u);
  EXPECT_EQ(published.source, source());
}

TEST(Codec, WhoAwaitsAVersionSaysWhatItHoldsOrNothing) {
  EXPECT_EQ(through_a_frame(AwaitPublished{}).held, std::nullopt);
  EXPECT_EQ(through_a_frame(AwaitPublished{0}).held, core::Version{0});
  EXPECT_EQ(through_a_frame(AwaitPublished{77}).held, core::Version{77});
}

TEST(Codec, TicketsOfAnUpdateKeepTheirBound) {
  IssueTickets issue;
  issue.update = 4;
  issue.groups = 16;
  issue.version_min = 3;
  EXPECT_EQ(through_a_frame(issue).version_min, 3u);
  const auto cut = through_a_frame(CutGroups{{{1, 2, 3}, {4, 5, 6}}});
  EXPECT_EQ(cut.tickets, (std::vector<experience::Ticket>{{1, 2, 3}, {4, 5, 6}}));
  PutGroup put;
  put.cut = true;
  put.too_long = 3;
  EXPECT_TRUE(through_a_frame(put).cut);
  EXPECT_EQ(through_a_frame(put).too_long, 3u);
}

TEST(Codec, AGroupToScoreSaysOnceWhatItsSamplesShare) {
  Score score;
  score.sent = {false, {"tests", "level"}};
  RewardGroup& group = score.group;
  group.prompt = "2 + 2 =";
  group.label = "4";
  group.columns = R"({"tests":["a"]})";
  group.messages = R"([{"role":"user","content":"2 + 2"}])";
  group.update = 6;
  group.samples = {{" 4", {}}, {" 5", {7, -1}}};
  const Score read = through_a_frame(score);
  EXPECT_EQ(read.sent, score.sent);
  EXPECT_EQ(read.group.prompt, group.prompt);
  EXPECT_EQ(read.group.label, group.label);
  EXPECT_EQ(read.group.columns, group.columns);
  EXPECT_EQ(read.group.messages, group.messages);
  EXPECT_EQ(read.group.update, 6u);
  ASSERT_EQ(read.group.samples.size(), 2u);
  EXPECT_EQ(read.group.samples[1].response, " 5");
  EXPECT_EQ(read.group.samples[1].tokens, (std::vector<std::int32_t>{7, -1}));
}

TEST(Codec, ScoresKeepValuesAndCauses) {
  const Scores read =
      through_a_frame(Scores{{0.5, std::nullopt}, {"", "no label"}, {R"({"length":3})", ""}, {}});
  EXPECT_EQ(read.values, (std::vector<std::optional<double>>{0.5, std::nullopt}));
  EXPECT_EQ(read.causes, (std::vector<std::string>{"", "no label"}));
  EXPECT_EQ(read.extras, (std::vector<std::string>{R"({"length":3})", ""}));
  const RewardReads reads{false, {"tests"}, true, true};
  EXPECT_EQ(through_a_frame(reads), reads);
}

TEST(Codec, ScoresKeepTheirSteps) {
  Scores sent{{0.5, std::nullopt}, {"", "lost"}};
  sent.steps = {{{3, 0.25}, {9, 0.75}}, {}};
  EXPECT_EQ(through_a_frame(sent).steps, sent.steps);
  sent.steps[0][1].score = std::nan("");
  const auto read = from_frame<Scores>(*to_frame(header(), sent));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "the score of a step is not a finite number");
}

TEST(RewardReads, ARowWithTheNamedColumnsAlone) {
  const std::string row = R"({"b": [1, 2.5], "a": "x", "c": null})";
  EXPECT_EQ(row_with(row, {true, {}}), row);
  EXPECT_EQ(row_with(row, {}), "{}");
  EXPECT_EQ(row_with(row, {false, {"a", "b", "gone"}}), R"({"b":[1,2.5],"a":"x"})");
  EXPECT_EQ(row_with("no JSON", {false, {"a"}}), "{}");
  const RewardReads all{true, {}}, two{false, {"a", "b"}}, chat{false, {}, true, true};
  EXPECT_TRUE(all.cover(all) && all.cover(two) && two.cover({false, {"b"}}) && two.cover({}));
  EXPECT_FALSE(two.cover(all) || two.cover({false, {"c"}}) || RewardReads{}.cover(two));
  const RewardReads no_tokens{true, {}, true, false};
  EXPECT_FALSE(all.cover(chat) || no_tokens.cover(chat));
  EXPECT_TRUE(chat.cover(chat) && chat.cover({}));
  EXPECT_EQ(all.text() + " | " + two.text() + " | " + RewardReads{}.text() + " | " + chat.text(),
            "all columns | columns a, b | nothing | messages; tokens");
}

TEST(Codec, StatusesOfGroupsKeepAgesAndRewards) {
  GroupStatuses message;
  message.groups.push_back({{1, 0, 0}, experience::GroupState::kReady, "", 8, 100, 0.5, false, 2});
  message.groups.push_back({{1, 1, 1}, experience::GroupState::kFailed, "lost"});
  message.staleness = {10, 20, 0};
  message.crossed = 3;
  message.rewards = {{"exact", 0.25}, {"format", 1.0}};
  message.extras = {{"length", 7.5}};
  const GroupStatuses read = through_a_frame(message);
  ASSERT_EQ(read.groups.size(), 2u);
  EXPECT_TRUE(read.groups[0].ready());
  EXPECT_EQ(read.groups[0].missing, 2u);
  EXPECT_EQ(read.groups[1].cause, "lost");
  EXPECT_EQ(read.groups[0].mean_score, 0.5);
  EXPECT_EQ(read.staleness, message.staleness);
  EXPECT_EQ(read.crossed, 3u);
  EXPECT_EQ(read.rewards, message.rewards);
  EXPECT_EQ(read.extras, message.extras);
  const auto await = through_a_frame(AwaitGroups{2, {0, 4, 8}});
  EXPECT_EQ(await.starts, (std::vector<core::Version>{0, 4, 8}));
}

TEST(Codec, RewardSetsKeepTheirMembers) {
  SetRewards message{
      3, 17, {{"exact", "reward/0", 1.0}, {"format", "reward/format", -0.5}}, {"old"}};
  const SetRewards read = through_a_frame(message);
  EXPECT_EQ(read.set, 3u);
  EXPECT_EQ(read.from_update, 17u);
  EXPECT_EQ(read.members, message.members);
  EXPECT_EQ(read.lost, message.lost);
  EXPECT_EQ(through_a_frame(AttachReward{"f", "reward/f", 2}).peer, "reward/f");
  EXPECT_EQ(through_a_frame(ReweightReward{"f", 2}).weight, 2);
  EXPECT_EQ(through_a_frame(DetachReward{"f"}).name, "f");
  EXPECT_EQ(through_a_frame(DrainReward{"g"}).name, "g");
  EXPECT_EQ(through_a_frame(RewardsChanged{3, 17}).from_update, 17u);
}

TEST(Codec, LinesOfALogKeepTheirNumbersAndTooManyAreRefused) {
  PutLog message{"node/a", 17, {"one", ""}, 3};
  const PutLog read = through_a_frame(message);
  EXPECT_EQ(read.first, 17u);
  EXPECT_EQ(read.lines, message.lines);
  EXPECT_EQ(read.dropped, 3u);
  const auto is_refused = [](const auto& sent) {
    using Message = std::decay_t<decltype(sent)>;
    auto frame = to_frame(header(), sent);
    return frame && !from_frame<Message>(*frame);
  };
  message.lines.assign(1, std::string(limits::kLogBatch_bytes_max, 'x'));
  EXPECT_FALSE(is_refused(message));
  message.lines[0] += 'x';
  EXPECT_TRUE(is_refused(message));
  message.lines.assign(limits::kLogBatch_lines_max + 1, "");
  EXPECT_TRUE(is_refused(message));
  Beat beat;
  beat.reports.resize(limits::kHostedRoles_max + 1);
  EXPECT_TRUE(is_refused(beat));
}

TEST(Codec, AWeightThatIsNoNumberIsRefused) {
  for (const double weight : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    auto frame = to_frame(header(), AttachReward{"f", "reward/f", weight});
    ASSERT_TRUE(frame);
    auto read = from_frame<AttachReward>(*frame);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, core::ErrorCode::kData);
    EXPECT_NE(read.error().message.find("reward f"), std::string::npos);
  }
}

TEST(Codec, AnArrayOfBrokenNumbersIsRefusedByItsName) {
  const std::string seven = "1234567";
  const capnp::Data::Reader broken(reinterpret_cast<const capnp::byte*>(seven.data()), 7);
  wire::Outgoing prompt(header()), responses(header()), versions(header());
  prompt.envelope().initScoreLogprobs().setPrompt(broken);
  responses.envelope().initScoreLogprobs().initResponses(2).set(1, broken);
  versions.envelope().initPutGroup().initSamples(1)[0].setVersions(broken);
  const auto refusal = []<class Message>(wire::Outgoing& out, Message) {
    auto read = from_frame<Message>(*out.finish());
    EXPECT_FALSE(read);
    EXPECT_EQ(read.error().code, core::ErrorCode::kData);
    return read.error().message;
  };
  EXPECT_EQ(refusal(prompt, ScoreLogprobs{}), "field prompt holds a broken array");
  EXPECT_EQ(refusal(responses, ScoreLogprobs{}), "field responses holds a broken array");
  EXPECT_EQ(refusal(versions, PutGroup{}), "field versions holds a broken array");
}

TEST(Codec, AnAnswerOfAnotherKindIsUnsupported) {
  const auto read = from_frame<Trained>(*to_frame(header(), Ack{}));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, core::ErrorCode::kUnsupported);
}

TEST(Codec, AScoreThatIsNoFiniteNumberIsMissing) {
  const Scores read = through_a_frame(Scores{{std::nan(""), 1.5}, {}, {}, {}});
  EXPECT_EQ(read.values, (std::vector<std::optional<double>>{std::nullopt, 1.5}));
  EXPECT_EQ(read.causes, (std::vector<std::string>{"the score is not a finite number", ""}));
}

TEST(Codec, AGroupKeepsItsSamples) {
  PutGroup put;
  put.ticket = {1, 2, 3};
  experience::Trajectory sent;
  sent.tokens = {5, -1};
  sent.behaviour = {0.5f, -2};
  sent.versions = {7, 8};
  sent.finish = experience::FinishReason::kStop;
  sent.text = "five";
  put.samples = {sent, {}};
  const PutGroup read = through_a_frame(put);
  EXPECT_EQ(read.ticket, put.ticket);
  ASSERT_EQ(read.samples.size(), 2u);
  const experience::Trajectory& got = read.samples[0];
  EXPECT_EQ(got.tokens, sent.tokens);
  EXPECT_EQ(got.behaviour, sent.behaviour);
  EXPECT_EQ(got.versions, sent.versions);
  EXPECT_EQ(got.finish, sent.finish);
  EXPECT_EQ(got.text, "five");
  EXPECT_EQ(got.score, std::nullopt);
  sent.reference = {-1, -2};
  sent.values = {0.25f, 0.5f};
  sent.score = 2.5;
  const ExperiencePage back = through_a_frame(ExperiencePage{{{{1, 2, 3}, {4}, {sent}}}});
  ASSERT_EQ(back.groups.size(), 1u);
  EXPECT_EQ(back.groups[0].prompt, std::vector<std::int32_t>{4});
  ASSERT_EQ(back.groups[0].samples.size(), 1u);
  EXPECT_EQ(back.groups[0].samples[0].reference, sent.reference);
  EXPECT_EQ(back.groups[0].samples[0].values, sent.values);
  EXPECT_EQ(back.groups[0].samples[0].score, 2.5);
}

TEST(Codec, NodesKeepWhatTheySayOfThemselves) {
  Join join{"node/a", "host-a", "boot", 42, 2, "exact-f32", "0.1.0", {"generator", "reward"}};
  join.run_id = 98;
  join.run = "runs/a";
  const Join read = through_a_frame(join);
  EXPECT_EQ(read.name, join.name);
  EXPECT_EQ(read.host, join.host);
  EXPECT_EQ(read.host_id, join.host_id);
  EXPECT_EQ(read.pid, 42u);
  EXPECT_EQ(read.cores, 2u);
  EXPECT_EQ(read.arithmetic, join.arithmetic);
  EXPECT_EQ(read.build, join.build);
  EXPECT_EQ(read.roles, join.roles);
  EXPECT_EQ(read.run_id, 98u);
  EXPECT_EQ(read.run, "runs/a");
  const Joined joined = through_a_frame(Joined{99, "node/a", {}, 0, "runs/b"});
  EXPECT_EQ(joined.run_id, 99u);
  EXPECT_EQ(joined.run, "runs/b");
  Beat beat{"node/a", 7, 4096};
  beat.reports.resize(2);
  beat.reports[1].name = "generator/1";
  beat.reports[1].age_s = 0.5;
  beat.reports[1].amounts = {{"tokens", 3}};
  const Beat heard = through_a_frame(beat);
  EXPECT_EQ(heard.count, 7u);
  EXPECT_EQ(heard.memory, 4096u);
  ASSERT_EQ(heard.reports.size(), 2u);
  EXPECT_EQ(heard.reports[1].name, "generator/1");
  EXPECT_EQ(heard.reports[1].age_s, 0.5);
  EXPECT_EQ(heard.reports[1].amounts, beat.reports[1].amounts);
  EXPECT_EQ(through_a_frame(DrainNode{"a", 3000}).wait_ms, 3000u);
  EXPECT_EQ(through_a_frame(DrainGenerator{"generator/1", 3000}).name, "generator/1");
  EXPECT_EQ(through_a_frame(Status{"{}"}).json, "{}");
  EXPECT_EQ(through_a_frame(StopRole{"generator/0"}).name, "generator/0");
  const Spawn spawn = through_a_frame(
      Spawn{"generator", "generator/1", 99, 3, 2, "train:\n  seed: 1\n", {{"checkpoint", "x"}}});
  EXPECT_EQ(spawn.kind, "generator");
  EXPECT_EQ(spawn.name, "generator/1");
  EXPECT_EQ(spawn.run_id, 99u);
  EXPECT_EQ(spawn.epoch, 3u);
  EXPECT_EQ(spawn.threads, 2u);
  EXPECT_EQ(spawn.config, "train:\n  seed: 1\n");
  EXPECT_EQ(spawn.settings,
            (std::vector<std::pair<std::string, std::string>>{{"checkpoint", "x"}}));
}

}  // namespace
TEST(Codec, RowsOfADatasetArriveWithAllTheirFields) {
  RowsPage page;
  page.total = 77;
  page.rows = {{4, {1, -2}, {3}, {5, 6}, {}, 0.25, false, "a.jsonl", 12},
               {9, {}, {7, 8}, {}, {0, 1}, 0, true, "b.json", 1}};
  const RowsPage read = through_a_frame(page);
  EXPECT_EQ(read.total, 77u);
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_EQ(read.rows[0].id, 4u);
  EXPECT_EQ(read.rows[0].prompt, page.rows[0].prompt);
  EXPECT_EQ(read.rows[0].answer, page.rows[0].answer);
  EXPECT_EQ(read.rows[0].rejected, page.rows[0].rejected);
  EXPECT_EQ(read.rows[0].margin, 0.25);
  EXPECT_FALSE(read.rows[0].desirable);
  EXPECT_EQ(read.rows[0].file, "a.jsonl");
  EXPECT_EQ(read.rows[0].line, 12u);
  EXPECT_EQ(read.rows[1].learn, page.rows[1].learn);
  const FetchRows fetch = through_a_frame(FetchRows{true, 3, 4});
  EXPECT_TRUE(fetch.held_out);
  EXPECT_EQ(fetch.first, 3u);
  EXPECT_EQ(fetch.count, 4u);
  EXPECT_TRUE(through_a_frame(EvaluateRows{6, true}).last);
  EXPECT_EQ(through_a_frame(EvaluateRows{6, true}).steps, 6u);
}

TEST(Codec, ARowWithFlagsForOtherTokensIsRefused) {
  RowsPage page;
  page.rows = {{9, {}, {7, 8}, {}, {1}, 0, true, "b.json", 1}};
  auto frame = to_frame(wire::Header{}, page);
  ASSERT_TRUE(frame);
  const auto read = from_frame<RowsPage>(std::move(*frame));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, core::ErrorCode::kData);
}

}  // namespace troupe::actors
