// The experience log of a run over several processes: after a kill -9 of everything an asynchronous
// run learns from the groups that it had, with the bits that it had, and samples none of them
// again.
#include "company_support.hpp"
#include "log_support.hpp"

namespace troupe::test {
namespace {

// The rollouts of the first updates, by step.
std::map<std::size_t, std::string> rollouts_of(const std::filesystem::path& run,
                                               std::size_t steps) {
  std::map<std::size_t, std::string> texts;
  for (std::size_t step = 1; step <= steps; ++step)
    texts[step] = text_of(run / "rollouts" / (checkpoint_name(static_cast<int>(step)) + ".jsonl"));
  return texts;
}

// Kills the head after so many updates; its nodes, which wait for no other, go with it.
void kill_all(CompanyRun& run, std::size_t steps) {
  ASSERT_TRUE(run.await_steps(steps)) << run.output();
  run.signal(SIGKILL);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  EXPECT_TRUE(run.all_nodes_gone());
}

std::size_t logged_steps(const std::filesystem::path& run) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run / "experience"))
    count += entry.path().extension() == ".log" ? 1 : 0;
  return count;
}

}  // namespace

TEST(CompanyLog, AnAsynchronousRunThatIsKilledGoesOnWithItsGroups) {
  const TinyRun files;
  const std::vector<std::string> flags = {
      "--train.staleness_max", "1",    "--rollout.generators",  "2",
      "--ckpt.save_steps",     "1000", "--cluster.head_wait_s", "0"};
  std::map<std::size_t, std::string> before;
  {
    CompanyRun killed(files, "run", flags);
    kill_all(killed, 4);
    before = rollouts_of(killed.folder(), 4);
    EXPECT_GE(logged_steps(killed.folder()), 4u);
  }
  CompanyRun again(files, "run", flags);
  ASSERT_EQ(again.wait(), 0) << again.output();
  EXPECT_NE(again.log().find("are in the experience log and are not sampled again"),
            std::string::npos)
      << again.log();
  for (const auto& [step, text] : rollouts_of(again.folder(), 4)) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text, before[step]) << "step " << step;
  }
  expect_clean_ledger(again.folder());
  EXPECT_LE(oldest_age(again.folder()), 1u);
  EXPECT_EQ(logged_steps(again.folder()), 0u) << "the last checkpoint covers all";
}

// 12 rows: before the first update, after 4 and perhaps after 8 all problems were evaluated.
TEST(CompanyLog, EvaluationsBeforeTheKillAreNotMadeAgain) {
  const TinyRun files;
  const std::vector<std::string> words =
      evaluated_run(files) + std::vector<std::string>{"--cluster.head_wait_s", "0"};
  {
    CompanyRun killed(files, "run", words);
    kill_all(killed, 12);
  }
  CompanyRun again(files, "run", words);
  ASSERT_EQ(again.wait(), 0) << again.output();
  EXPECT_NE(again.log().find(" evaluations after the checkpoint are in the experience log"),
            std::string::npos)
      << again.log();
  expect_each_evaluation_once(again.folder(), 4);
  CompanyRun calm(files, "calm", words);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  EXPECT_EQ(metric_rows(files / "run"), metric_rows(files / "calm"));
  expect_same_bits(files / "calm", files / "run", 40);
}

// The last record of the third update is torn, as after a crash of the host: its group, and those
// of later updates, are sampled again, and each update's rollouts are there once.
TEST(CompanyLog, ATornLogGivesTheSameRolloutsOnce) {
  const TinyRun files;
  const std::vector<std::string> words = {"--ckpt.save_steps", "1000", "--cluster.head_wait_s",
                                          "0"};
  {
    CompanyRun killed(files, "run", words);
    kill_all(killed, 5);
    const auto third = killed.folder() / "experience" / "step_000003.log";
    std::filesystem::resize_file(third, std::filesystem::file_size(third) - 5);
  }
  CompanyRun again(files, "run", words);
  ASSERT_EQ(again.wait(), 0) << again.output();
  EXPECT_NE(again.log().find("groups of 3 updates after the checkpoint"), std::string::npos)
      << again.log();
  EXPECT_EQ(again.log().find("from memory"), std::string::npos) << again.log();
  expect_clean_ledger(again.folder());
  CompanyRun calm(files, "calm", words);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  expect_same_bits(files / "calm", files / "run", 10);
}

// Without the hashes nobody can tell whether it was sampled from the same model and data.
TEST(CompanyLog, ALogOfUnknownContentsIsNotUsed) {
  const TinyRun files;
  const std::vector<std::string> flags = {"--cluster.transport", "loopback", "--ckpt.save_steps",
                                          "1000"};
  {
    CompanyRun killed(files, "run", flags);
    ASSERT_TRUE(killed.await_steps(3)) << killed.output();
    killed.signal(SIGKILL);
    killed.wait();
  }
  std::filesystem::remove(files / "run" / "experience" / "contents.json");
  CompanyRun again(files, "run", flags);
  ASSERT_EQ(again.wait(), 0) << again.output();
  EXPECT_NE(again.log().find("the experience log is not used"), std::string::npos) << again.log();
  EXPECT_EQ(again.log().find("are not sampled again"), std::string::npos) << again.log();
  expect_clean_ledger(again.folder());
}

}  // namespace troupe::test
