// Groups that need a teacher's log-probs: each asks the teacher of its prompt's domain, waits for
// one that is away, and is replaced where the teacher's answer is of no use.
#include "tests/unit/actors/data/data_stage.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;

// Two teachers, the first for even prompts.
DataRoleOptions taught_options(std::vector<RewardMember> rewards) {
  DataRoleOptions options;
  options.samples = 2;
  options.rewards = std::move(rewards);
  options.scoring.teachers = {{"teacher/0", "the teacher of even"},
                              {"teacher/1", "the teacher of odd"}};
  options.scoring.temperature = 0.5f;
  return options;
}

// Every token has this log-prob.
ScriptedReference::Script teacher_saying(float logprob) {
  return [logprob](const ScoreLogprobs& request) -> core::Result<Logprobs> {
    Logprobs reply;
    for (const auto& response : request.responses)
      reply.samples.emplace_back(response.size(), logprob);
    return reply;
  };
}

struct TaughtStage {
  explicit TaughtStage(std::vector<RewardMember> rewards)
      : noted(taught_options(std::move(rewards))) {
    for (int i = 0; i < 2; ++i)
      teachers.push_back(teacher(i, teacher_saying(-1.0f - static_cast<float>(i))));
  }
  std::shared_ptr<ScriptedReference> teacher(int place, ScriptedReference::Script script) {
    auto made = std::make_shared<ScriptedReference>(&noted.stage.time, std::move(script));
    noted.stage.play("teacher/" + std::to_string(place), made);
    return made;
  }
  NotedStage noted;
  DataStage& stage = noted.stage;
  std::vector<std::shared_ptr<ScriptedReference>> teachers;
};

}  // namespace

TEST(DataRoleTeacher, APromptIsTaughtByTheTeacherOfItsDomain) {
  TaughtStage c({kRight});
  c.stage.reward("reward/right", numbers_times(1));
  for (const auto& ticket : c.stage.issue(0, 2))
    c.stage.ask(delivery(ticket, 2)).value();
  const auto statuses = c.stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses) << statuses.error().message;
  ASSERT_EQ(c.teachers[0]->calls.size(), 1u);
  ASSERT_EQ(c.teachers[1]->calls.size(), 1u);
  EXPECT_EQ(c.teachers[0]->calls[0].prompt, std::vector<std::int32_t>{0});
  EXPECT_EQ(c.teachers[1]->calls[0].prompt, std::vector<std::int32_t>{1});
  EXPECT_EQ(c.teachers[1]->calls[0].temperature, 0.5f);
  const auto page = c.stage.ask(FetchExperience{0, {0, 1}});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->groups.size(), 2u);
  EXPECT_EQ(page->groups[0].samples[0].teacher, (std::vector<float>{-1, -1}));
  EXPECT_EQ(page->groups[1].samples[1].teacher, (std::vector<float>{-2, -2}));
  EXPECT_TRUE(page->groups[0].samples[0].reference.empty());
}

TEST(DataRoleTeacher, WithoutRewardsAGroupIsReadyWhenItIsTaught) {
  TaughtStage c({});
  c.teachers[0]->hold();
  const auto ticket = c.stage.issue(0, 1)[0];
  c.stage.ask(delivery(ticket, 2)).value();
  c.stage.run(1s);
  EXPECT_EQ(c.stage.amount("open_groups/generated"), 1);
  c.teachers[0]->release();
  const auto statuses = c.stage.ask(AwaitGroups{0, {}});
  ASSERT_TRUE(statuses) << statuses.error().message;
  EXPECT_TRUE(statuses->groups[0].ready());
  EXPECT_EQ(statuses->groups[0].mean_score, 0);
}

TEST(DataRoleTeacher, EvaluationsHaveNoTeacher) {
  TaughtStage c({kRight});
  c.stage.reward("reward/right", numbers_times(1));
  const std::uint64_t evaluation = experience::evaluation_after(0, false);
  c.stage.ask(delivery(c.stage.issue(evaluation, 1)[0], 2)).value();
  ASSERT_TRUE(c.stage.ask(AwaitGroups{evaluation, {}}));
  EXPECT_TRUE(c.teachers[0]->calls.empty());
}

TEST(DataRoleTeacher, ATeacherThatIsAwayIsWaitedForAndOneThatStaysAwayIsNamed) {
  TaughtStage c({});
  c.teachers[0]->answer = [](const ScoreLogprobs&) -> core::Result<Logprobs> {
    return core::fail(ErrorCode::kPeerLost, "connection refused");
  };
  c.stage.ask(delivery(c.stage.issue(0, 1)[0], 2)).value();
  c.stage.run(30s);
  EXPECT_EQ(c.stage.amount("open_groups/generated"), 1);
  ASSERT_EQ(c.noted.notes.size(), 1u);
  EXPECT_EQ(c.noted.notes[0].rfind("the teacher of even is away: ", 0), 0u) << c.noted.notes[0];
  auto waiting = c.stage.begin(AwaitGroups{0, {}});
  c.stage.run(271s);
  ASSERT_TRUE(waiting.done());
  ASSERT_FALSE(waiting.value());
  EXPECT_EQ(waiting.value().error().code, ErrorCode::kPeerLost);
  EXPECT_NE(waiting.value().error().message.find("the teacher of even has been away for 300 s"),
            std::string::npos)
      << waiting.value().error().message;
  c.teachers[0]->answer = teacher_saying(-3);
  c.stage.run(11s);
  EXPECT_EQ(c.stage.amount("open_groups/ready"), 1);
  EXPECT_EQ(c.stage.amount("failed_groups/teacher"), 0);
}

TEST(DataRoleTeacher, AnAnswerThatIsOfNoUseFailsItsGroupAndSaysWhy) {
  const std::vector<std::pair<ScriptedReference::Script, std::string>> answers = {
      {teacher_saying(std::nanf("")),
       "the teacher of even gave a log-prob that is not a finite number"},
      {teacher_saying(-INFINITY),
       "the teacher of even gave a log-prob that is not a finite number"},
      {[](const ScoreLogprobs&) -> core::Result<Logprobs> {
         return Logprobs{{{-1, -1}, {-1}}};
       },
       "the teacher of even gave log-probs that do not fit the samples"},
      {[](const ScoreLogprobs&) -> core::Result<Logprobs> {
         return Logprobs{{{-1, -1}}};
       },
       "the teacher of even gave log-probs that do not fit the samples"},
      {[](const ScoreLogprobs&) -> core::Result<Logprobs> {
         return core::fail(ErrorCode::kData, "another tokenizer");
       },
       "the teacher of even: teacher/0: another tokenizer"}};
  for (const auto& [answer, why] : answers) {
    TaughtStage c({});
    c.teachers[0]->answer = answer;
    c.stage.ask(delivery(c.stage.issue(0, 1)[0], 2)).value();
    const auto statuses = c.stage.ask(AwaitGroups{0, {}});
    ASSERT_TRUE(statuses) << statuses.error().message;
    EXPECT_EQ(statuses->groups[0].cause, why);
    EXPECT_EQ(c.stage.amount("failed_groups/teacher"), 1);
  }
}

}  // namespace troupe::actors::data
