// Runs that are told to end by SIGTERM or Ctrl-C where their update cannot be finished in time, or
// by nobody: nothing that was accepted is lost, and they do not wait.
#include "company_support.hpp"

namespace troupe::test {
namespace {

using Words = std::vector<std::string>;

// Saves at the end alone.
const Words kGraceRun = {"--train.max_steps", "40", "--ckpt.save_steps", "0"};

void expect_calm_bits_after_grace(const TinyRun& files, const Words& words) {
  CompanyRun calm(files, "calm", words);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  expect_same_bits(files / "calm", files / "run", 40);
}

// The run goes on to its end from what the one before it left.
void expect_goes_on(const TinyRun& files, const Words& words) {
  CompanyRun again(files, "run", words);
  ASSERT_EQ(again.wait(), 0) << again.output();
  EXPECT_NE(again.log().find("are in the experience log and are not sampled again"),
            std::string::npos)
      << again.log();
  expect_clean_ledger(again.folder());
  expect_calm_bits_after_grace(files, words);
}

}  // namespace

// Scoring takes ten minutes from the fifth update on.
TEST(CompanyGrace, GroupsWithoutScoresAreNotWaitedForAndKept) {
  const TinyRun files;
  const auto slow = files / "slow", waits = files / "waits";
  std::ofstream(files / "reward.py")
      << "import os, time\n"
         "def reward_func(queries, prompts, labels):\n"
         "    if os.path.exists('"
      << slow.string() << "'):\n        open('" << waits.string()
      << "', 'w').close()\n"
         "        time.sleep(600)\n"
         "    return [float(sum(c.isalpha() for c in q[len(p):])) for q, p in zip(queries, "
         "prompts)]\n";
  const Words words = kGraceRun + Words{"--reward.rule",         "",
                                        "--reward.rule_pattern", "",
                                        "--reward.python",       (files / "reward.py").string(),
                                        "--reward.deadline_s",   "1000"};
  {
    CompanyRun run(files, "run", words + Words{"--run.grace_s", "4"});
    ASSERT_TRUE(run.await_steps(4)) << run.output();
    std::ofstream(slow) << "yes";
    ASSERT_TRUE(within(CompanyRun::kLimit_s, [&] { return std::filesystem::exists(waits); }));
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 130) << run.output();
    EXPECT_NE(run.output().find("stopped within run.grace_s: update " +
                                std::to_string(run.steps()) + " is saved"),
              std::string::npos)
        << run.output();
    EXPECT_TRUE(run.all_nodes_gone());
    EXPECT_LT(run.steps(), 40u);
  }
  std::filesystem::remove(slow);
  expect_goes_on(files, words);
}

TEST(CompanyGrace, AStepThatDoesNotEndIsNotWaitedFor) {
  const TinyRun files;
  {
    CompanyRun run(files, "run", kGraceRun + Words{"--run.grace_s", "1"});
    const pid_t policy = run.node_after("policy", 5);
    ASSERT_GT(policy, 0) << run.output();
    ::kill(policy, SIGSTOP);
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 130) << run.output();
    EXPECT_NE(run.output().find("stopped within run.grace_s: no checkpoint was written, the last "
                                "has 0 updates"),
              std::string::npos)
        << run.output();
    EXPECT_NE(run.output().find("learning again from updates 1 to"), std::string::npos)
        << run.output();
    EXPECT_TRUE(run.all_nodes_gone());
  }
  expect_goes_on(files, kGraceRun);
}

TEST(CompanyGrace, CtrlCEndsTheWaitForANodeThatNeverComes) {
  for (const Words& without :
       {Words{"--cluster.local_roles", "policy,generator"}, Words{"--rollout.generators", "0"}}) {
    const TinyRun files;
    CompanyRun run(files, "run", without);
    ASSERT_TRUE(within(CompanyRun::kLimit_s, [&] {
      return run.output().find("join with --join") != std::string::npos &&
             run.nodes().contains("policy");
    })) << run.output();
    run.signal(SIGINT);
    EXPECT_EQ(run.wait(30), 130) << run.output();
    EXPECT_NE(run.output().find("stopped as asked"), std::string::npos) << run.output();
    EXPECT_EQ(run.output().find("error:"), std::string::npos) << run.output();
    EXPECT_TRUE(run.all_nodes_gone());
  }
}

TEST(CompanyGrace, TimesThatAreNoneAreRefused) {
  const TinyRun files;
  for (const std::string bad : {"-1", "soon", "1e9", "2.5"}) {
    const Ended run = troupe_ends(files.words("run") + Words{"--grace", bad}, files / "out", 60);
    EXPECT_EQ(run.status, 2) << run.text;
    EXPECT_NE(run.text.find("run.grace_s"), std::string::npos) << run.text;
  }
  EXPECT_FALSE(std::filesystem::exists(files / "run"));
}

}  // namespace troupe::test
