// Runs that end for an error: what was committed is saved first, and never a state between two
// steps.
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

using namespace testing;
using core::ErrorCode;

Script ending_script(std::uint64_t staleness, std::uint64_t updates = 6) {
  Script script;
  script.plan.updates = updates;
  script.plan.groups = 2;
  script.plan.samples = 2;
  script.plan.staleness_max = staleness;
  script.critic = true;
  return script;
}

// The places of the steps of a checkpoint, in order.
void expect_last_checkpoint(const ScriptedCompany& company, std::uint64_t done) {
  const std::string checkpoint = "checkpoint " + std::to_string(done);
  EXPECT_EQ(company.count("checkpoint "), 1u);
  EXPECT_EQ(company.place(checkpoint), company.events().size() - 1) << "the last that happens";
  EXPECT_LT(company.place("commit u" + std::to_string(done - 1) + ".0.0"),
            company.place("critic saves"));
  EXPECT_LT(company.place("critic saves"), company.place("save"));
}

}  // namespace

TEST(Ending, AGroupThatFailsAgainAndAgainEndsTheRunAfterACheckpoint) {
  Script script = ending_script(0);
  script.fails = [](const experience::Ticket& ticket) {
    return ticket.update == 3 && ticket.slot == 1;
  };
  ScriptedCompany company(script);
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kData);
  EXPECT_EQ(played.error().message,
            "4 groups in a row failed for update 4, prompt 2; the last: no score; "
            "update 3 is saved in /saved");
  EXPECT_EQ(company.hearer().faults, (std::vector<std::uint32_t>{1, 2, 3, 4}));
  expect_last_checkpoint(company, 3);
}

// Beside the trainer, in the middle of its step: the step is finished, committed and saved.
TEST(Ending, AnErrorElsewhereWaitsForTheStepUnderWay) {
  ScriptedCompany company(ending_script(1));
  std::size_t training = 0;
  company.at(100ms, [&] {
    training = company.count("train ");
    EXPECT_EQ(training, company.count("trained ") + 1) << "a step is under way";
    company.controller().end({ErrorCode::kPeerLost, "a reward stayed away"});
  });
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kDeadline) << "nothing to be played again";
  EXPECT_EQ(played.error().message,
            "a reward stayed away; update " + std::to_string(training) + " is saved in /saved");
  EXPECT_EQ(company.count("trained "), training);
  EXPECT_EQ(company.count("publish "), training + 1);
  EXPECT_EQ(company.hearer().reports.size(), training);
  expect_last_checkpoint(company, training);
}

TEST(Ending, WhatIsSavedAlreadyOrNeverChangedIsNotSavedAgain) {
  for (const std::uint64_t save_steps : {0, 1}) {
    Script script = ending_script(0);
    script.plan.save_steps = save_steps;
    script.fails = [&](const experience::Ticket& ticket) {
      return ticket.update == save_steps * 2;
    };
    ScriptedCompany company(script);
    const auto played = company.play();
    ASSERT_FALSE(played);
    EXPECT_EQ(company.count("checkpoint "), save_steps * 2);
    EXPECT_EQ(played.error().message.find("saved"), std::string::npos) << played.error().message;
  }
}

TEST(Ending, AStateHalfWayThroughAnUpdateIsNoCheckpoint) {
  Script script = ending_script(0);
  script.train_fails = 2;
  script.half_way = true;
  ScriptedCompany company(script);
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kNumeric);
  EXPECT_NE(played.error().message.find("; update 2 cannot be saved: "), std::string::npos);
  EXPECT_NE(played.error().message.find("half-way"), std::string::npos);
  EXPECT_EQ(company.count("checkpoint "), 0u);
}

TEST(Ending, ASaveIntoAPlaceThatIsGoneIsMadeAgainElsewhere) {
  Script script = ending_script(0);
  script.plan.save_steps = 2;
  ScriptedCompany company(script);
  company.hearer().moves_at_save = true;
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kResources);
  EXPECT_EQ(played.error().message, "the run folder was moved; update 2 is saved in /saved");
  EXPECT_EQ(company.count("checkpoint "), 1u);
}

TEST(Ending, ALostPolicyLeavesNothingToSave) {
  ScriptedCompany company(ending_script(0));
  company.at(100ms, [&] {
    company.crash("policy/0");
    company.tell_lost("policy/0");
  });
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kPeerLost) << "to be played again";
  EXPECT_EQ(company.count("checkpoint "), 0u);
}

// What a restart may cure begins another session, the first two times.
TEST(Ending, ATrainerThatFailsInAnUpdateIsStartedAgain) {
  Script script = ending_script(0);
  script.train_fails = 2;
  script.train_code = ErrorCode::kResources;
  script.plan.restarts = true;
  script.plan.failed = {2, 1};
  ScriptedCompany company(script);
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kPeerLost) << "the session is played again";
  EXPECT_EQ(played.error().message.find("update 3 failed (2 of 3): policy/0: "), 0u)
      << played.error().message;
  EXPECT_EQ(company.hearer().failed_update.update, 2u);
  EXPECT_EQ(company.hearer().failed_update.times, 2u);
  EXPECT_EQ(company.count("checkpoint "), 0u) << "the policy stands half-way";
}

TEST(Ending, AnUpdateThatFailsThreeTimesEndsTheRunAndOneOfEarlierUpdatesDoesNotCount) {
  for (const std::uint64_t before : {1, 2}) {
    Script script = ending_script(0);
    script.train_fails = 2;
    script.train_code = ErrorCode::kInternal;
    script.plan.restarts = true;
    script.plan.failed = {before, 2};
    ScriptedCompany company(script);
    const auto played = company.play();
    ASSERT_FALSE(played);
    EXPECT_EQ(played.error().code, before == 2 ? ErrorCode::kInternal : ErrorCode::kPeerLost);
    EXPECT_EQ(company.hearer().failed_update.times, before == 2 ? 3u : 1u);
  }
}

// A loss that is no number comes again; in one process nobody starts a trainer again.
TEST(Ending, OtherFailuresOfAnUpdateEndTheRunAtOnce) {
  for (const bool restarts : {true, false}) {
    Script script = ending_script(0);
    script.train_fails = 2;
    script.train_code = restarts ? ErrorCode::kNumeric : ErrorCode::kResources;
    script.plan.restarts = restarts;
    ScriptedCompany company(script);
    const auto played = company.play();
    ASSERT_FALSE(played);
    EXPECT_EQ(played.error().code, script.train_code);
    EXPECT_EQ(company.hearer().failed_update.times, 0u);
  }
}

TEST(Ending, AFullDiskPausesTheRunAndLosesNothing) {
  Script script = ending_script(1);
  script.commits_full = 3;
  script.plan.save_steps = 2;
  ScriptedCompany company(script);
  company.hearer().updates_full = 2;
  company.hearer().checkpoints_full = 5;
  const auto played = company.play();
  ASSERT_TRUE(played) << played.error().message;
  EXPECT_EQ(company.data().trained.size(), 6u * 2);
  EXPECT_EQ(company.hearer().reports.size(), 6u);
  EXPECT_EQ(company.count("checkpoint "), 3u);
  EXPECT_EQ(company.controller().snapshot().counts.at("waits for room"), 3u + 2 + 5);
  EXPECT_EQ(company.hearer().troubles.size(), 3u) << "each step says so once";
  EXPECT_GT(company.took(), 7s + 3s + 25s) << "pauses of 1, 2, 4, 8 and 10 s";
}

TEST(Ending, ACheckpointIsMadeForTheSakeOfTime) {
  Script script = ending_script(0, 20);
  script.plan.save_minutes = 500ms;
  ScriptedCompany company(script);
  ASSERT_TRUE(company.play());
  const std::size_t saved = company.count("checkpoint ");
  EXPECT_GT(saved, 2u);
  EXPECT_LT(saved, 20u);
}

TEST(Ending, AStopIsHeededWhileTheDiskIsFull) {
  Script script = ending_script(0);
  script.commits_full = 1'000'000;
  ScriptedCompany company(script);
  company.at(20s, [&company] { company.hearer().stop = true; });
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(core::exit_status(played.error().code), 3);
  EXPECT_LT(company.took(), 31s);
}

}  // namespace troupe::actors::controller
