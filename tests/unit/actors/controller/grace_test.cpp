// Runs that have little time to end: what still fits is finished and saved, nothing else is waited
// for. A group takes 20 ms to sample and 3 to score, an update 50 to train; saving takes no time
// unless a test says so.
#include "actors/controller/grace.hpp"

#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

using namespace testing;
using core::ErrorCode;
using Step = Grace::Step;

core::TimePoint at(core::Duration since_start) {
  return core::TimePoint(since_start);
}

Script grace_script(std::uint64_t updates = 40) {
  Script script;
  script.plan.updates = updates;
  script.plan.groups = 2;
  script.plan.samples = 2;
  return script;
}

// Asks the run to stop after `when`, with `grace` from then on.
void stop_after(ScriptedCompany& company, core::Duration when, core::Duration grace) {
  company.at(when, [&company, grace] {
    company.hearer().stop = true;
    company.hearer().deadline = company.time().now() + grace;
  });
}

}  // namespace

TEST(Grace, TheRestOfAnUpdateFollowsFromTheOneBefore) {
  Grace grace;
  EXPECT_EQ(grace.rest(at(5s)), 0s) << "nothing is under way";
  grace.begin(Step::kCollect, at(10s));
  EXPECT_EQ(grace.rest(at(15s)), 0s) << "nobody knows";
  grace.begin(Step::kTrain, at(40s));  // 30 s to collect
  grace.end(at(60s));                  // 20 s to train
  grace.begin(Step::kCollect, at(100s));
  EXPECT_EQ(grace.rest(at(100s)), 50s);
  EXPECT_EQ(grace.rest(at(125s)), 25s);
  EXPECT_EQ(grace.rest(at(300s)), 20s) << "it is late; training is still to come";
  grace.begin(Step::kTrain, at(300s));
  EXPECT_EQ(grace.rest(at(305s)), 15s);
  EXPECT_EQ(grace.rest(at(400s)), 0s);
  EXPECT_EQ(grace.expected(Step::kCollect), std::optional<core::Duration>(200s));
  grace.skip();
  EXPECT_EQ(grace.expected(Step::kTrain), std::optional<core::Duration>(20s)) << "not learned from";
  grace.begin(Step::kSave, at(500s));
  EXPECT_EQ(grace.rest(at(501s)), 0s) << "a checkpoint is no part of an update";
  grace.end(at(507s));
  EXPECT_EQ(grace.expected(Step::kSave), std::optional<core::Duration>(7s));
  EXPECT_EQ(grace.expected(Step::kEvaluate), std::nullopt);
}

TEST(GraceRun, AnUpdateThatFitsIsFinishedAndSaved) {
  ScriptedCompany company(grace_script());
  stop_after(company, 300ms, 500ms);
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kInterrupted);
  const std::size_t done = company.hearer().reports.size();
  EXPECT_EQ(played.error().message,
            "stopped after update " + std::to_string(done) +
                " as asked; run the same command again to go on from there");
  EXPECT_TRUE(company.has("checkpoint " + std::to_string(done)));
  EXPECT_EQ(company.count("train "), done);
  EXPECT_TRUE(company.hearer().given_up.empty());
}

// One group takes 100 s.
TEST(GraceRun, GroupsThatDoNotComeAreNotWaitedFor) {
  Script script = grace_script();
  script.length = [](const experience::Ticket& ticket, std::size_t) -> std::uint64_t {
    return ticket.update == 3 && ticket.slot == 1 ? 100'000 : 20;
  };
  ScriptedCompany company(script);
  stop_after(company, 5s, 2s);
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kInterrupted);
  EXPECT_TRUE(company.has("checkpoint 3"));
  EXPECT_LE(company.took(), 7s);
  EXPECT_EQ(
      company.hearer().given_up,
      (std::vector<std::string>{"stopped within run.grace_s: update 3 is saved; what was "
                                "sampled since is in the experience log, and the same command "
                                "goes on from it"}));
}

// Training takes a minute: when it has begun, it is not waited for; it is not begun in vain.
TEST(GraceRun, AStepThatDoesNotFitIsNotWaitedFor) {
  Script script = grace_script();
  script.train_time = 60s;
  ScriptedCompany company(script);
  stop_after(company, 200s, 10s);
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(company.count("checkpoint "), 0u);
  EXPECT_EQ(company.hearer().reports.size(), 3u);
  EXPECT_LT(company.took(), 201s) << "at once";
  ASSERT_EQ(company.hearer().given_up.size(), 1u);
  EXPECT_EQ(
      company.hearer().given_up[0],
      "stopped within run.grace_s: no checkpoint was written, the last has 0 updates; what was "
      "sampled since is in the experience log, and the same command goes on from it, learning "
      "again from updates 1 to 4");
}

TEST(GraceRun, AStepThatWouldNotFitIsNotBegun) {
  Script script = grace_script();
  script.train_time = 60s;
  script.score_time = 10s;
  ScriptedCompany company(script);
  // The second update is being collected from about 70 s to 80 s.
  stop_after(company, 75s, 30s);
  ASSERT_FALSE(company.play());
  EXPECT_EQ(company.count("train "), 1u);
  EXPECT_TRUE(company.has("checkpoint 1"));
  EXPECT_LT(company.took(), 80s) << "nor are its groups";
}

// The first update: nobody knows how long it takes.
TEST(GraceRun, AStepOfUnknownLengthIsWaitedForToTheLimit) {
  Script script = grace_script();
  script.train_time = 60s;
  ScriptedCompany company(script);
  stop_after(company, 10s, 20s);
  ASSERT_FALSE(company.play());
  EXPECT_GE(company.took(), 30s);
  EXPECT_LT(company.took(), 31s);
  EXPECT_EQ(company.count("checkpoint "), 0u);
  EXPECT_EQ(company.hearer().given_up.size(), 1u);
}

// It is made when the run goes on.
TEST(GraceRun, AnEvaluationIsLeftToTheNextStart) {
  Script script = grace_script();
  script.plan.evaluation_groups = 3;
  script.plan.evaluation.n_samples_per_prompt = 1;
  script.plan.evaluation.steps = 1;
  ScriptedCompany company(script);
  stop_after(company, 500ms, 1s);
  ASSERT_FALSE(company.play());
  const std::size_t done = company.hearer().reports.size();
  EXPECT_TRUE(company.has("checkpoint " + std::to_string(done)));
  for (const std::uint64_t owed : {2, 1, 0}) {
    script.plan.first_update = done;
    script.plan.updates = done + 1;
    script.plan.evaluations_owed = owed;
    ScriptedCompany next(script);
    ASSERT_TRUE(next.play());
    const auto& made = next.hearer().evaluations;
    EXPECT_EQ(made.size(), owed + 2);
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(made[i].done, i < owed ? done : done + 1);
      EXPECT_EQ(made[i].greedy, (made.size() - i) % 2 == 0);
    }
  }
}

TEST(GraceRun, WithoutGeneratorsAnEvaluationEndsAtOnce) {
  Script script = grace_script();
  script.plan.evaluation_groups = 3;
  script.plan.evaluation.n_samples_per_prompt = 1;
  ScriptedCompany company(script);
  company.at(10ms, [&] {
    company.crash("generator/0");
    company.tell_lost("generator/0");
    company.hearer().stop = true;
  });
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kInterrupted);
  EXPECT_LT(company.took(), 1s);
}

// The pause while a disk is full grows to 10 s.
TEST(GraceRun, AFullDiskDoesNotHoldUpAStop) {
  Script script = grace_script();
  script.commits_full = 1000;
  ScriptedCompany company(script);
  company.at(28s, [&] { company.hearer().stop = true; });
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kNoRoom);
  EXPECT_LT(company.took(), 29s);
}

}  // namespace troupe::actors::controller
