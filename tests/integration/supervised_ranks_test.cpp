// The supervised methods as a company: a trainer of several ranks has the bits of one process,
// whatever becomes of a rank or of the head; one rank without a word about the company starts no
// process. (supervised_ranks_day_test.cpp has more losses, tests/ranks every method, number of
// ranks and stage.)
#include "supervised_ranks_support.hpp"

namespace troupe::test {
TEST_F(SupervisedRanks, TwoRanksHaveTheBitsOfOneProcess) {
  calm(sft_);
  CompanyRun two(files_ / "two", words(sft_, "two", {"--actor.ranks", "2"}));
  expect_as_calm(two);
  EXPECT_NE(two.log().find("2 ranks of the policy"), std::string::npos) << two.log();
}

TEST_F(SupervisedRanks, AStageOfZeroHasTheSameBits) {
  const Words half = {"--ckpt.save_dtype", "bf16"};
  calm(dpo_, half);
  const Words ranks = {"--actor.ranks", "2", "--train.zero_stage", "3"};
  CompanyRun run(files_ / "run", words(dpo_, "run", ranks + half));
  expect_as_calm(run);
  const auto last = run.folder() / "ckpt" / checkpoint_name(kLastStep);
  EXPECT_TRUE(fs::exists(last / "policy" / "rank-1-of-2.safetensors"));
  EXPECT_NE(text_of(last / "model" / "config.json").find("bfloat16"), std::string::npos);
}

TEST_F(SupervisedRanks, ARankThatIsKilledInAStepChangesNoBit) {
  expect_survives(sft_, "policy-1", {"--ckpt.save_steps", "2"});
}

TEST_F(SupervisedRanks, ATrainerInAProcessOfItsOwnIsStartedAgain) {
  const ProgramRun whole = run_troupe(words(dpo_, "calm"));
  ASSERT_EQ(whole.status, 0) << whole.output;
  CompanyRun run(files_ / "run", words(dpo_, "run", {"--cluster.transport", "caf"}));
  const pid_t pid = run.node_after("policy", 4);
  ASSERT_GT(pid, 0) << run.output();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  expect_as_calm(run);
}

TEST_F(SupervisedRanks, TheNextHeadTakesTheTrainerOver) {
  calm(sft_, {"--ckpt.save_steps", "4"});
  const Words more = {"--actor.ranks", "2", "--ckpt.save_steps", "4"};
  CompanyRun first(files_ / "run", words(sft_, "run", more));
  ASSERT_TRUE(first.await_steps(3)) << first.output();
  first.signal(SIGKILL);
  EXPECT_EQ(first.wait(), 128 + SIGKILL);
  CompanyRun next(files_ / "run", words(sft_, "run", more));
  expect_as_calm(next);
}

TEST_F(SupervisedRanks, ARunGoesOnWithAnotherNumberOfRanks) {
  calm(sft_);
  CompanyRun two(files_ / "run",
                 words(sft_, "run", {"--actor.ranks", "2", "--cluster.head_wait_s", "0"}));
  ASSERT_TRUE(two.await_steps(4)) << two.output();
  two.signal(SIGKILL);
  EXPECT_EQ(two.wait(), 128 + SIGKILL);
  CompanyRun one(files_ / "run", words(sft_, "run"));
  expect_as_calm(one);
}

TEST_F(SupervisedRanks, ARankThatJoinsNeedsNoFileOfTheDataset) {
  calm(sft_);
  CompanyRun run(files_ / "run", words(sft_, "run",
                                       {"--actor.ranks", "2", "--cluster.local_ranks", "1",
                                        "--cluster.trusted_network", "127.0.0.0/8"}));
  ASSERT_TRUE(within(30, [&] {
    return run.log().find("waiting for nodes that run policy") != std::string::npos;
  })) << run.output();
  fs::rename(files_ / sft_.file, files_ / "out_of_sight");
  Background node(Words{troupe_program(), "node", "--join", (files_ / "run").string(), "--roles",
                        "policy", "--name", "one"},
                  files_ / "node.log");
  expect_as_calm(run);
  EXPECT_EQ(node.wait(10), 0) << node.text();
}

TEST_F(SupervisedRanks, OneRankStartsNoProcess) {
  CompanyRun run(files_ / "run", files_.words(sft_, "run", 100000));
  ASSERT_TRUE(run.await_steps(3)) << run.output();
  EXPECT_TRUE(run.nodes().empty());
  EXPECT_FALSE(fs::exists(run.folder() / "nodes"));
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 130) << run.output();
}

TEST_F(SupervisedRanks, WrongNumbersAreRefusedWithAWayOut) {
  const auto refused = [&](const Words& more, const Words& parts) {
    const Ended ended = troupe_ends(words(sft_, "none", more), files_ / "none.out", 60);
    EXPECT_EQ(ended.status, 2) << ended.text;
    for (const std::string& part : parts)
      EXPECT_NE(ended.text.find(part), std::string::npos) << part << "\n" << ended.text;
    EXPECT_FALSE(fs::exists(files_ / "none"));
  };
  refused({"--actor.ranks", "3", "--train.lanes", "2"},
          {"actor.ranks", "3 ranks, but train.lanes is 2", "--train.lanes 3"});
  refused({"--actor.ranks", "5"}, {"actor.ranks", "5 ranks", "only 4 samples"});
  refused({"--actor.ranks", "2", "--cluster.transport", "loopback"},
          {"actor.ranks", "--cluster.transport caf"});
}

}  // namespace troupe::test
