// The ends of a run over several processes: its head killed or stopped, roles that cannot start,
// and one that dies again and again. Nobody is left behind, and nothing hangs.
#include "company_support.hpp"

namespace troupe::test {
namespace {

const std::vector<std::string> kEndless = {
    "--train.max_steps", "100000", "--train.num_episodes", "100000", "--ckpt.save_steps", "1000"};

void expect_start_fails(const TinyRun& files,
                        int status,
                        const std::string& text,
                        std::vector<std::string> words = {}) {
  CompanyRun run(files, "run", std::move(words));
  within(20, [&] { return !run.nodes().empty() || run.wait(0); });
  EXPECT_EQ(run.wait(30), status) << run.output();
  EXPECT_NE(run.output().find(text), std::string::npos) << run.output();
  EXPECT_EQ(run.output().find("is lost"), std::string::npos) << run.output();
  EXPECT_EQ(run.steps(), 0u);
  EXPECT_TRUE(run.all_nodes_gone());
}

}  // namespace

TEST(CompanyEnd, NodesDieWithAKilledHeadAndTheCommandGoesOnAgain) {
  const TinyRun files;
  const std::vector<std::string> alone = {"--cluster.head_wait_s", "0"};
  CompanyRun whole(files, "whole");
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  {
    CompanyRun run(files, "run", alone);
    ASSERT_TRUE(run.await_steps(4)) << run.output();
    EXPECT_EQ(run.nodes().size(), 4u);
    run.signal(SIGKILL);
    EXPECT_EQ(run.wait(), 128 + SIGKILL);
    EXPECT_TRUE(run.all_nodes_gone());
  }
  CompanyRun again(files, "run", alone);
  ASSERT_EQ(again.wait(), 0) << again.output();
  expect_same_bits(whole.folder(), again.folder(), 10);
  expect_clean_ledger(again.folder());
}

TEST(CompanyEnd, AStopSignalLeavesACheckpointAndNobody) {
  const TinyRun files;
  CompanyRun run(files, "run", kEndless);
  ASSERT_TRUE(run.await_steps(2)) << run.output();
  EXPECT_EQ(run.nodes().size(), 4u);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(30), 130) << run.output();
  EXPECT_TRUE(run.all_nodes_gone());
  const std::size_t steps = run.steps();
  EXPECT_FALSE(hashes_of(run.folder() / "ckpt" / checkpoint_name(static_cast<int>(steps))).empty());
  expect_clean_ledger(run.folder());
  // It ends as a run does that is done, and says how to go on.
  const std::string output = run.output();
  EXPECT_NE(output.find("wall time of the run by phase"), std::string::npos) << output;
  EXPECT_NE(output.find("peak memory of one process"), std::string::npos) << output;
  EXPECT_NE(output.find("stopped after update " + std::to_string(steps) + " as asked"),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("run the same command again to go on"), std::string::npos) << output;
  EXPECT_EQ(output.find("error:"), std::string::npos) << output;
}

// A frozen generator keeps the first signal from being heeded at once.
TEST(CompanyEnd, ASecondStopSignalEndsAtOnce) {
  const TinyRun files;
  CompanyRun run(files, "run", kEndless);
  const pid_t generator = run.node_after("generator-0", 2);
  ASSERT_GT(generator, 0) << run.output();
  ::kill(generator, SIGSTOP);
  run.signal(SIGTERM);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(10), 130) << run.output();
  EXPECT_NE(run.output().find("stopped at once"), std::string::npos) << run.output();
  EXPECT_TRUE(run.all_nodes_gone());
}

TEST(CompanyEnd, TruncatedWeightsEndTheStart) {
  const TinyRun files;
  const std::filesystem::path weights = files.model() + "/model.safetensors";
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) / 2);
  expect_start_fails(files, 4, "model.safetensors");
}

TEST(CompanyEnd, AMissingFileOfTheModelEndsTheStart) {
  const TinyRun files;
  std::filesystem::remove(files.model() + "/model.safetensors");
  expect_start_fails(files, 2, "no model.safetensors");
}

TEST(CompanyEnd, ARewardThatIsNoPythonEndsTheStart) {
  const TinyRun files;
  std::ofstream(files / "score.py") << "def reward_func(queries, prompts, labels:\n";
  std::string config = text_of(files / "tiny.yaml");
  const std::string rule = "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}";
  ASSERT_NE(config.find(rule), std::string::npos);
  config.replace(config.find(rule), rule.size(),
                 "reward: {python: " + (files / "score.py").string() + "}");
  std::ofstream(files / "tiny.yaml") << config;
  expect_start_fails(files, 2, "score.py");
}

TEST(CompanyEnd, ARoleThatDiesAgainAndAgainEndsTheRunWithItsLastCause) {
  const TinyRun files;
  CompanyRun run(files, "run", kEndless);
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  pid_t killed = 0;
  std::size_t kills = 0;
  const bool ended = within(60, [&] {
    if (run.wait(0)) return true;
    const auto now = run.nodes();
    const auto found = now.find("reward");
    const std::size_t starts = [&] {
      const std::string log = text_of(run.folder() / "nodes" / "reward.log");
      std::size_t count = 0;
      for (auto at = log.find("started reward/0"); at != std::string::npos;
           at = log.find("started reward/0", at + 1)) {
        ++count;
      }
      return count;
    }();
    if (found != now.end() && found->second != killed && starts > kills) {
      killed = found->second;
      ::kill(killed, SIGKILL);
      ++kills;
    }
    return false;
  });
  EXPECT_TRUE(ended) << run.output();
  EXPECT_EQ(run.wait(0), 5) << run.output();
  EXPECT_GE(kills, 8u);
  EXPECT_NE(run.output().find("reward/0 was lost 8 times within 60 s"), std::string::npos)
      << run.output();
  EXPECT_NE(run.output().find("was ended by signal 9"), std::string::npos) << run.output();
  const std::string last = checkpoint_name(static_cast<int>(run.steps()));
  EXPECT_NE(run.output().find(" is saved in " + (run.folder() / "ckpt" / last).string()),
            std::string::npos)
      << run.output();
  EXPECT_FALSE(hashes_of(run.folder() / "ckpt" / last).empty());
  EXPECT_TRUE(run.all_nodes_gone());
}

}  // namespace troupe::test
