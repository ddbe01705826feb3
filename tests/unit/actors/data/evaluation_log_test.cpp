// What the experience log does beside keeping the groups of updates: evaluations are in it, and
// what is committed comes out of it.
#include "tests/unit/actors/data/log_stage.hpp"

namespace troupe::actors::data {
namespace {

using namespace test;
using core::ErrorCode;
using experience::Ticket;
using Tickets = std::vector<Ticket>;
using EvaluationLog = LogStage;
using CommitLog = LogStage;

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
TEST_F(CommitLog, ACommitReadsTheLog) {
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

TEST_F(CommitLog, ACommitWithoutTheLogIsMadeFromMemory) {
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

TEST_F(CommitLog, ARepeatedCommitIsMadeOnce) {
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

TEST_F(EvaluationLog, AnEvaluationThatWasMadeIsNotMadeAgain) {
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

TEST_F(EvaluationLog, AnEvaluationThatBrokeOffGoesOn) {
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

TEST_F(EvaluationLog, AnEvaluationWithOtherSettingsIsMadeAnew) {
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

TEST_F(EvaluationLog, NoEvaluationCountsBeforeItIsOnDisk) {
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
TEST_F(EvaluationLog, EvaluationsBelongToTheUpdatesBeforeThem) {
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

}  // namespace
}  // namespace troupe::actors::data
