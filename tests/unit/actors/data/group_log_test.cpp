// The experience log: a data role that begins anew has the groups, scores and prompts of the one
// before it; what is not there is asked for again.
#include "actors/data/group_log.hpp"

#include "actors/data/limits.hpp"
#include "tests/unit/actors/data/log_stage.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;
using experience::Ticket;
using Tickets = std::vector<Ticket>;
using GroupLogTest = LogStage;

TEST_F(GroupLogTest, AnotherLifeHasTheGroupsAndAsksForTheOthersOnly) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    const auto tickets = stage.issue(0, 3);
    ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
    ASSERT_TRUE(stage.ask(delivery(tickets[2], 2, {0, 1})));
    stage.run(1s);
  }
  DataStage stage(options());
  const auto right = stage.reward("reward/right", numbers_times(1));
  EXPECT_EQ(stage.issue(0, 3), (Tickets{{0, 1, 0}}));
  EXPECT_EQ(stage.issue(0, 3), (Tickets{{0, 1, 0}})) << "the request comes again";
  ASSERT_TRUE(stage.ask(delivery({0, 1, 0}, 2)));
  EXPECT_EQ(states(stage, 0), (States{"ready", "ready", "ready"}));
  EXPECT_EQ(right->calls.size(), 1u) << "scores are in the log, too";
  FetchExperience fetch{0, {0, 1, 2}};
  const auto page = stage.ask(std::move(fetch));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->groups[2].samples[1].versions, (experience::VersionRuns{0, 1}));
  EXPECT_EQ(page->groups[2].samples[1].score, 2.0);
  EXPECT_EQ(page->groups[2].prompt, (std::vector<std::int32_t>{2}));
  // The stream of prompts goes on behind those that were taken.
  ASSERT_EQ(stage.issue(1, 1), (Tickets{{1, 0, 0}}));
  FetchPrompts prompts{{{1, 0, 0}}};
  EXPECT_EQ(stage.ask(std::move(prompts))->tasks[0].prompt, 3u);
}

TEST_F(GroupLogTest, ScoresThatWereMissingAreAskedForAgain) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1))->hold();
    ASSERT_TRUE(stage.ask(delivery(stage.issue(0, 1)[0], 2)));
    stage.run(1s);
  }
  DataStage stage(options());
  const auto right = stage.reward("reward/right", numbers_times(1));
  EXPECT_TRUE(stage.issue(0, 1).empty());
  EXPECT_EQ(states(stage, 0), States{"ready"});
  EXPECT_EQ(right->calls.size(), 1u);
}

TEST_F(GroupLogTest, AReplacedGroupKeepsItsAttemptAndPrompt) {
  {
    DataStage stage(options());
    const auto right = stage.reward("reward/right", failing(ErrorCode::kData, "no"));
    const auto tickets = stage.issue(0, 2);
    ASSERT_TRUE(stage.ask(delivery(tickets[1], 2)));
    EXPECT_EQ(states(stage, 0), (States{"issued", "failed"}));
    ASSERT_TRUE(stage.reissue({0, 1, 0}));
    right->answer = numbers_times(1);
    ASSERT_TRUE(stage.ask(delivery({0, 1, 1}, 2)));
    ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
    stage.run(1s);
  }
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  EXPECT_TRUE(stage.issue(0, 2).empty());
  EXPECT_EQ(states(stage, 0), (States{"ready", "ready"}));
  FetchPrompts prompts{{{0, 0, 0}, {0, 1, 1}}};
  const auto tasks = stage.ask(std::move(prompts));
  EXPECT_EQ(tasks->tasks[0].prompt, 0u);
  EXPECT_EQ(tasks->tasks[1].prompt, 2u);
}

TEST_F(GroupLogTest, PromptsOfTicketsThatTheLogHasLostAreGivenAgain) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    stage.issue(0, 2);
    stage.issue(1, 2);
    ASSERT_TRUE(stage.reissue({0, 1, 0}));  // takes prompt 4
    stage.run(1s);
  }
  std::filesystem::remove(file(2));
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  EXPECT_EQ(stage.issue(0, 2), (Tickets{{0, 0, 0}, {0, 1, 1}}));
  stage.issue(1, 3);
  FetchPrompts prompts{{{0, 1, 1}, {1, 0, 0}, {1, 1, 0}, {1, 2, 0}}};
  const auto tasks = stage.ask(std::move(prompts));
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->tasks[0].prompt, 4u);
  EXPECT_EQ(tasks->tasks[1].prompt, 2u);
  EXPECT_EQ(tasks->tasks[2].prompt, 3u);
  EXPECT_EQ(tasks->tasks[3].prompt, 5u);
}

// What the run would have done without the failure.
TEST_F(GroupLogTest, AnUpdateThatBrokeOffBecauseOfAFailureBeginsAnew) {
  {
    DataStage stage(options());
    stage.reward("reward/right", failing(ErrorCode::kData, "no"));
    ASSERT_TRUE(stage.ask(SetRewards(change(1, 0, {kRightOnce, kShort}))));
    ASSERT_TRUE(stage.ask(delivery(stage.issue(0, 2)[1], 2)));
    EXPECT_EQ(states(stage, 0), (States{"issued", "failed"}));
    ASSERT_TRUE(stage.reissue({0, 1, 0}));
    stage.run(1s);
  }
  const store::StepLog log(folder_.path(), disk_);
  EXPECT_EQ(read_log(log, 0)->sets.size(), 1u) << "changes of rewards hold";
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  EXPECT_EQ(stage.issue(0, 2), (Tickets{{0, 0, 0}, {0, 1, 0}}));
  FetchPrompts prompts{{{0, 0, 0}, {0, 1, 0}}};
  const auto tasks = stage.ask(std::move(prompts));
  EXPECT_EQ(tasks->tasks[0].prompt, 0u);
  EXPECT_EQ(tasks->tasks[1].prompt, 1u);
}

TEST_F(GroupLogTest, NothingIsReadyBeforeItIsOnDisk) {
  disk_.full = true;
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  ASSERT_TRUE(stage.ask(delivery(stage.issue(0, 1)[0], 2)));
  stage.run(1s);
  AwaitGroups await{0, {}};
  const auto full = stage.ask(AwaitGroups{await});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kNoRoom);
  EXPECT_NE(full.error().message.find("step_000001.log"), std::string::npos);
  disk_.full = false;
  EXPECT_EQ(states(stage, 0), States{"ready"});
}

// A batch is synced every 50 ms, and at once when the policy waits for it.
TEST_F(GroupLogTest, WhoeverWaitsDoesNotWaitForABatch) {
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  const auto tickets = stage.issue(0, 1);
  stage.run(1s);
  const core::TimePoint begin = stage.now();
  ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
  EXPECT_EQ(states(stage, 0), States{"ready"});
  EXPECT_LT(stage.now() - begin, limits::kLogEvery / 2);
  stage.issue(1, 1);
  EXPECT_EQ(stage.amount("logged_events"), 3) << "nobody waits for this one";
  stage.run(limits::kLogEvery + 1ms);
  EXPECT_EQ(stage.amount("logged_events"), 4);
}

TEST_F(GroupLogTest, FilesBehindAGapOrADamagedEndAreRemoved) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    for (std::uint64_t update = 0; update < 4; ++update)
      ASSERT_TRUE(stage.ask(delivery(stage.issue(update, 1)[0], 2)));
    stage.run(1s);
  }
  const store::StepLog log(folder_.path(), disk_);
  EXPECT_EQ(read_log(log, 0)->updates, 4u);
  EXPECT_EQ(read_log(log, 2)->updates, 2u);
  EXPECT_EQ(read_log(log, 2)->issued.back().saved.prompt, 3u);
  std::string third = troupe::test::read_file(file(3));
  third.back() ^= 1;
  troupe::test::put_file(file(3), third);
  const auto damaged = read_log(log, 0);
  EXPECT_EQ(damaged->updates, 3u);
  EXPECT_EQ(damaged->groups, 3u);
  ASSERT_EQ(damaged->notes.size(), 1u);
  EXPECT_TRUE(
      damaged->notes[0].starts_with(file(3).string() + " is damaged or incomplete at byte "))
      << damaged->notes[0];
  EXPECT_TRUE(damaged->notes[0].ends_with(
      ": groups of updates 3 to 4 that were in the experience log are sampled again"))
      << damaged->notes[0];
  EXPECT_TRUE(read_log(log, 0)->notes.empty()) << "what is left is whole";
  EXPECT_EQ(*log.steps(), (std::vector<std::uint64_t>{1, 2, 3})) << "what came later is gone";
  std::filesystem::remove(file(1));
  const auto missing = read_log(log, 0);
  EXPECT_EQ(missing->updates, 0u);
  EXPECT_EQ(missing->notes,
            (std::vector<std::string>{file(1).string() +
                                      " is missing: groups of updates 2 to 3 that were in the "
                                      "experience log are sampled again"}));
  EXPECT_TRUE(log.steps()->empty()) << "they belong to a run that this one does not repeat";
}

// Records know their update.
TEST_F(GroupLogTest, FilesUnderEachOthersNamesAreNotTaken) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    for (std::uint64_t update = 0; update < 3; ++update)
      ASSERT_TRUE(stage.ask(delivery(stage.issue(update, 1)[0], 2)));
    stage.run(1s);
  }
  std::filesystem::rename(file(2), folder_ / "aside");
  std::filesystem::rename(file(3), file(2));
  std::filesystem::rename(folder_ / "aside", file(3));
  const store::StepLog log(folder_.path(), disk_);
  const auto found = read_log(log, 0);
  EXPECT_EQ(found->updates, 1u);
  EXPECT_EQ(found->notes,
            (std::vector<std::string>{file(2).string() +
                                      " has records of another update: groups of updates 2 to 3 "
                                      "that were in the experience log are sampled again"}));
  // What is sampled again stands where it belongs.
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    ASSERT_TRUE(stage.ask(delivery(stage.issue(1, 1)[0], 2)));
    stage.run(1s);
  }
  EXPECT_EQ(read_log(log, 0)->updates, 2u);
  EXPECT_TRUE(read_log(log, 0)->notes.empty());
}

// They were confirmed, and the end of an earlier file is no reason to forget them.
TEST_F(GroupLogTest, ChangesOfRewardsBehindADamagedEndHold) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    for (std::uint64_t update = 0; update < 2; ++update)
      ASSERT_TRUE(stage.ask(delivery(stage.issue(update, 1)[0], 2)));
    ASSERT_TRUE(stage.ask(SetRewards(change(1, 1, {kRightOnce, kShort}))));
    EXPECT_EQ(states(stage, 0), States{"ready"});
    ASSERT_TRUE(stage.ask(CommitUpdate{0, 1}));
    EXPECT_EQ(states(stage, 1), States{"ready"});
    ASSERT_TRUE(stage.ask(CommitUpdate{1, 2}));
    ASSERT_TRUE(stage.ask(SetRewards(change(2, 2, {kShort}))));
    stage.run(1s);
  }
  const store::StepLog log(folder_.path(), disk_);
  std::string first = troupe::test::read_file(file(1));
  first.back() ^= 1;
  troupe::test::put_file(file(1), first);
  for (const char* const time : {"the first time", "once more"}) {
    const auto found = read_log(log, 0);
    ASSERT_EQ(found->sets.size(), 1u) << time << ": the second is of a run that has committed more";
    EXPECT_EQ(found->sets[0].set, 1u);
    EXPECT_EQ(found->updates, 1u);
    EXPECT_EQ(*log.steps(), (std::vector<std::uint64_t>{1, 2}));
  }
}

TEST_F(GroupLogTest, ChangesOfRewardsAreKeptIfTheRunGetsToThem) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    stage.issue(0, 1);
    ASSERT_TRUE(stage.ask(SetRewards(change(1, 1, {kRightOnce, kShort}))));
    ASSERT_TRUE(stage.ask(SetRewards(change(2, 3, {kShort}, {"right"}))));
  }
  const store::StepLog log(folder_.path(), disk_);
  auto found = read_log(log, 0);
  ASSERT_EQ(found->sets.size(), 2u);
  EXPECT_EQ(found->sets[1].set, 2u);
  EXPECT_EQ(found->sets[1].from_update, 3u);
  EXPECT_EQ(found->sets[1].lost, (std::vector<std::string>{"right"}));
}

// A run with a bound of 2 goes on after 5 updates: tickets of update 5 and 6 (counted from 0) were
// issued with the versions at the start of 3 and 4; that of 7 waits for the session's own.
TEST(EarlierStarts, AreThoseThatTicketsWereIssuedWith) {
  LoggedRun logged;
  logged.first_update = 5;
  const auto issued = [&logged](std::uint64_t update, core::Version version_min) {
    TicketIssued& one = logged.issued.emplace_back();
    one.saved.ticket.update = update;
    one.version_min = version_min;
  };
  issued(5, 12);
  issued(5, 12);
  issued(6, 16);
  issued(7, 20);
  EXPECT_EQ(earlier_starts(logged, 2), (std::map<std::uint64_t, core::Version>{{3, 12}, {4, 16}}));
  EXPECT_EQ(earlier_starts(logged, 0), (std::map<std::uint64_t, core::Version>{}));
}

}  // namespace
}  // namespace troupe::actors::data
