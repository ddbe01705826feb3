// The experience log: a data role that begins anew has the groups, scores and prompts of the one
// before it; what is not there is asked for again.
#include "actors/data/group_log.hpp"

#include "tests/unit/actors/data/data_stage.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace test;
using core::ErrorCode;
using experience::Ticket;
using Tickets = std::vector<Ticket>;

// A disk that can be full, over the system's.
class CrampedDisk final : public store::Disk {
 public:
  bool full = false;

  bool exists(const std::filesystem::path& path) override { return disk_.exists(path); }
  core::Result<void> make_folder(const std::filesystem::path& path) override {
    return disk_.make_folder(path);
  }
  core::Result<void> write_file(const std::filesystem::path& path,
                                std::string_view content) override {
    return disk_.write_file(path, content);
  }
  core::Result<std::string> read_file(const std::filesystem::path& path) override {
    return disk_.read_file(path);
  }
  core::Result<void> append(const std::filesystem::path& path, std::string_view content) override {
    if (full) return core::fail(ErrorCode::kDiskFull, "no room for " + path.string());
    return disk_.append(path, content);
  }
  core::Result<void> sync(const std::filesystem::path& path) override { return disk_.sync(path); }
  core::Result<void> cut(const std::filesystem::path& path, std::uint64_t bytes) override {
    return disk_.cut(path, bytes);
  }
  core::Result<void> remove(const std::filesystem::path& path) override {
    return disk_.remove(path);
  }
  core::Result<std::vector<std::string>> list(const std::filesystem::path& folder) override {
    return disk_.list(folder);
  }
  core::Result<std::uint64_t> size_of(const std::filesystem::path& path) override {
    return disk_.size_of(path);
  }

 private:
  store::Disk& disk_ = store::system_disk();
};

class GroupLogTest : public ::testing::Test {
 protected:
  DataRoleOptions options() {
    DataRoleOptions options;
    options.samples = 2;
    options.rewards = {kRightOnce};
    options.log.folder = folder_.path();
    options.log.disk = &disk_;
    options.log.found = *read_log(store::StepLog(folder_.path(), disk_), 0);
    return options;
  }
  static std::vector<std::string> states(DataStage& stage, std::uint64_t update) {
    AwaitGroups await{update, {}};
    const auto statuses = stage.ask(std::move(await));
    std::vector<std::string> found;
    if (!statuses) return {statuses.error().message};
    for (const auto& group : statuses->groups)
      found.emplace_back(experience::state_name(group.state));
    return found;
  }
  std::filesystem::path file(std::uint64_t step) {
    return folder_ / ("step_00000" + std::to_string(step) + ".log");
  }

  troupe::test::TempFolder folder_;
  CrampedDisk disk_;
};

using States = std::vector<std::string>;

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
  EXPECT_EQ(full.error().code, ErrorCode::kDiskFull);
  EXPECT_NE(full.error().message.find("step_000001.log"), std::string::npos);
  disk_.full = false;
  EXPECT_EQ(states(stage, 0), States{"ready"});
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
  EXPECT_EQ(*log.steps(), (std::vector<std::uint64_t>{1, 2, 3})) << "what came later is gone";
  std::filesystem::remove(file(1));
  EXPECT_EQ(read_log(log, 0)->updates, 0u);
  EXPECT_TRUE(log.steps()->empty()) << "they belong to a run that this one does not repeat";
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

// Puts `to` in the place of `from`, of the same length, in the one record that has it.
void change_record(const store::StepLog& log,
                   const std::filesystem::path& file,
                   std::uint64_t step,
                   const std::string& from,
                   const std::string& to) {
  const auto content = log.read(step);
  ASSERT_TRUE(content);
  std::filesystem::remove(file);
  store::StepLog again = log;
  int changed = 0;
  for (std::string record : content->records) {
    const auto place = record.find(from);
    if (place != std::string::npos) record.replace(place, from.size(), to);
    changed += place != std::string::npos ? 1 : 0;
    again.add(step, record);
  }
  EXPECT_EQ(changed, 1);
  auto batch = again.take();
  ASSERT_TRUE(log.write(batch));
}

// What is committed, and goes into the rollout files, is what the log has.
TEST_F(GroupLogTest, ACommitReadsTheLog) {
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  const auto tickets = stage.issue(0, 1);
  PutGroup put = delivery(tickets[0], 2);
  ASSERT_TRUE(stage.ask(std::move(put)));
  EXPECT_EQ(states(stage, 0), States{"ready"});
  // The texts are ["1", "2"]: a list of two strings of one byte.
  change_record(store::StepLog(folder_.path(), disk_), file(1), 1,
                "\x82\x61"
                "1\x61"
                "2",
                "\x82\x61"
                "1\x61"
                "X");
  ASSERT_TRUE(stage.ask(CommitUpdate{0, 1}));
  ASSERT_EQ(stage.committed.groups[0].size(), 1u);
  EXPECT_EQ(stage.committed.groups[0][0].samples[1].text, "X");
  EXPECT_EQ(stage.committed.groups[0][0].samples[1].score, 2.0);
}

TEST_F(GroupLogTest, ACommitWithoutTheLogIsMadeFromMemory) {
  NotedStage noted(options());
  DataStage& stage = noted.stage;
  stage.reward("reward/right", numbers_times(1));
  for (std::uint64_t update = 0; update < 3; ++update) {
    ASSERT_TRUE(stage.ask(delivery(stage.issue(update, 1)[0], 2)));
    EXPECT_EQ(states(stage, update), States{"ready"});
  }
  std::string first = troupe::test::read_file(file(1));
  first.back() ^= 1;
  troupe::test::put_file(file(1), first);
  std::filesystem::remove(file(2));
  // The third has other log-probs (2 samples of 2 tokens, -1 each) than the policy was given.
  const std::string minus_one("\0\0\x80\xBF", 4), minus_two("\0\0\0\xC0", 4);
  change_record(store::StepLog(folder_.path(), disk_), file(3), 3,
                minus_one + minus_one + minus_one + minus_one,
                minus_one + minus_one + minus_one + minus_two);
  for (std::uint64_t update = 0; update < 3; ++update) {
    ASSERT_TRUE(stage.ask(CommitUpdate{update, update + 1}));
    ASSERT_EQ(stage.committed.groups[update].size(), 1u);
    EXPECT_EQ(stage.committed.groups[update][0].samples[1].behaviour, (std::vector<float>{-1, -1}));
    ASSERT_EQ(noted.notes.size(), update + 1);
    EXPECT_NE(noted.notes[update].find("update " + std::to_string(update + 1) +
                                       " is written down from memory: "),
              std::string::npos)
        << noted.notes[update];
  }
  EXPECT_NE(noted.notes[2].find("prompt 1 as it was learned from"), std::string::npos);
}

TEST_F(GroupLogTest, ARepeatedCommitIsMadeOnce) {
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  ASSERT_TRUE(stage.ask(delivery(stage.issue(0, 1)[0], 2)));
  EXPECT_EQ(states(stage, 0), States{"ready"});
  auto once = stage.begin(CommitUpdate{0, 1}), again = stage.begin(CommitUpdate{0, 1});
  stage.run(1s);
  EXPECT_TRUE(once.value());
  EXPECT_TRUE(again.value()) << "the sink of this stage refuses a second one";
}

// Held-out problems: greedy and sampled evaluation after 3 updates.
const std::uint64_t kGreedy = experience::evaluation_after(3, true);
const std::uint64_t kSampled = experience::evaluation_after(3, false);

TEST_F(GroupLogTest, AnEvaluationThatWasMadeIsNotMadeAgain) {
  const auto commit = [](DataStage& stage, std::uint64_t evaluation) {
    EXPECT_TRUE(stage.ask(CommitUpdate{evaluation, 3}));
    return stage.committed.groups[evaluation];
  };
  std::vector<BookGroup> greedy, sampled;
  {
    DataStage stage(options());
    const auto right = stage.reward("reward/right", numbers_times(1));
    for (std::uint64_t update = 0; update < 3; ++update)
      ASSERT_TRUE(stage.ask(delivery(stage.issue(update, 1)[0], 2)));
    for (const Ticket& ticket : stage.issue(kGreedy, 2))
      ASSERT_TRUE(stage.ask(delivery(ticket, 2)));
    EXPECT_EQ(states(stage, kGreedy), (States{"ready", "ready"}));
    greedy = commit(stage, kGreedy);
    const auto tickets = stage.issue(kSampled, 3);
    ASSERT_TRUE(stage.ask(delivery(tickets[1], 2, {5, 5})));
    stage.run(10ms);
    right->answer = failing(ErrorCode::kData, "no");
    ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
    ASSERT_TRUE(stage.ask(delivery(tickets[2], 2)));
    EXPECT_EQ(states(stage, kSampled), (States{"failed", "ready", "failed"}));
    sampled = commit(stage, kSampled);
  }
  EXPECT_TRUE(std::filesystem::exists(file(3)));
  EXPECT_FALSE(std::filesystem::exists(file(4)));
  DataStage stage(options());
  const auto right = stage.reward("reward/right", numbers_times(1));
  EXPECT_TRUE(stage.issue(kGreedy, 2).empty());
  const auto greedy_again = commit(stage, kGreedy);
  EXPECT_TRUE(stage.issue(kSampled, 3).empty());
  EXPECT_EQ(states(stage, kSampled), (States{"failed", "ready", "failed"})) << "failures stay";
  const auto sampled_again = commit(stage, kSampled);
  EXPECT_TRUE(right->calls.empty());
  ASSERT_EQ(greedy_again.size(), 2u);
  EXPECT_EQ(greedy_again[1].prompt, 1u);
  EXPECT_EQ(greedy_again[1].samples[1].text, greedy[1].samples[1].text);
  ASSERT_EQ(sampled_again.size(), 1u);
  EXPECT_EQ(sampled_again[0].prompt, sampled[0].prompt);
  EXPECT_EQ(sampled_again[0].samples[1].versions, (experience::VersionRuns{5, 5}));
  EXPECT_EQ(sampled_again[0].samples[1].score, 2.0);
  EXPECT_TRUE(stage.issue(0, 1).empty()) << "tickets of updates are not mixed up with them";
}

TEST_F(GroupLogTest, AnEvaluationThatBrokeOffGoesOn) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    ASSERT_TRUE(stage.ask(delivery(stage.issue(0, 1)[0], 2)));
    ASSERT_TRUE(stage.ask(delivery(stage.issue(experience::evaluation_after(1, false), 3)[1], 2)));
    stage.run(1s);
  }
  DataStage stage(options());
  stage.reward("reward/right", numbers_times(1));
  const std::uint64_t evaluation = experience::evaluation_after(1, false);
  EXPECT_EQ(stage.issue(evaluation, 3), (Tickets{{evaluation, 0, 0}, {evaluation, 2, 0}}));
  FetchPrompts prompts{{{evaluation, 0, 0}, {evaluation, 2, 0}}};
  const auto tasks = stage.ask(std::move(prompts));
  EXPECT_EQ(tasks->tasks[0].prompt, 0u);
  EXPECT_EQ(tasks->tasks[1].prompt, 2u);
  for (const std::uint32_t slot : {0u, 2u})
    ASSERT_TRUE(stage.ask(delivery({evaluation, slot, 0}, 2)));
  EXPECT_EQ(states(stage, evaluation), (States{"ready", "ready", "ready"}));
}

TEST_F(GroupLogTest, AnEvaluationWithOtherSettingsIsMadeAnew) {
  const auto with_settings = [this](const std::string& settings) {
    DataRoleOptions changed = options();
    changed.evaluation_settings = settings;
    return changed;
  };
  const std::uint64_t evaluation = experience::evaluation_after(0, true);
  for (const std::string settings : {"2 problems", "3 problems"}) {
    DataStage stage(with_settings(settings));
    stage.reward("reward/right", numbers_times(settings[0] - '0'));
    const auto tickets = stage.issue(evaluation, 1);
    ASSERT_EQ(tickets.size(), 1u) << settings;
    ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
    EXPECT_EQ(states(stage, evaluation), States{"ready"});
  }
  DataStage stage(with_settings("3 problems"));
  EXPECT_TRUE(stage.issue(evaluation, 1).empty());
  ASSERT_TRUE(stage.ask(CommitUpdate{evaluation, 0}));
  EXPECT_EQ(stage.committed.groups[evaluation][0].samples[0].score, 3.0) << "the newer one counts";
}

TEST_F(GroupLogTest, NoEvaluationCountsBeforeItIsOnDisk) {
  DataStage stage(options());
  stage.reward("reward/right", failing(ErrorCode::kData, "no"));
  const auto tickets = stage.issue(kSampled, 1);
  disk_.full = true;
  ASSERT_TRUE(stage.ask(delivery(tickets[0], 2)));
  stage.run(1s);
  EXPECT_NE(states(stage, kSampled)[0].find("no room"), std::string::npos);
  disk_.full = false;
  EXPECT_EQ(states(stage, kSampled), States{"failed"});
}

// Evaluations after 0, 1 and 2 updates: those that a checkpoint covers, or that come behind a gap,
// do not belong to the run that goes on.
TEST_F(GroupLogTest, EvaluationsBelongToTheUpdatesBeforeThem) {
  {
    DataStage stage(options());
    stage.reward("reward/right", numbers_times(1));
    for (std::uint64_t update = 0; update < 2; ++update) {
      stage.issue(experience::evaluation_after(update, true), 1);
      ASSERT_TRUE(stage.ask(delivery(stage.issue(update, 1)[0], 2)));
    }
    stage.issue(experience::evaluation_after(2, true), 1);
    stage.run(1s);
  }
  using Evaluations = std::set<std::uint64_t>;
  const auto after = [](std::uint64_t done) { return experience::evaluation_after(done, true); };
  const store::StepLog log(folder_.path(), disk_);
  EXPECT_EQ(read_log(log, 0)->evaluations, (Evaluations{after(0), after(1), after(2)}));
  EXPECT_EQ(read_log(log, 1)->evaluations, (Evaluations{after(2)}));
  EXPECT_EQ(read_log(log, 0)->updates, 2u);
  std::filesystem::remove(file(1));
  EXPECT_EQ(read_log(log, 0)->evaluations, (Evaluations{after(0)}));
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
}  // namespace troupe::actors
