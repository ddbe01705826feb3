// Policy and critic over several ranks: the bits of one process, whatever becomes of a rank or a
// head. (tests/ranks has every number of ranks and every stage.)
#include "company_support.hpp"

namespace troupe::test {
namespace {

using Words = std::vector<std::string>;

const Words kGae = {"--algo.advantage.estimator", "gae", "--critic.adam.lr", "1e-3"};

// A calm run in one process with these lanes, and what other runs must equal.
class Gangs : public ::testing::Test {
 protected:
  explicit Gangs(const model::ModelSpec& spec = tiny_llama()) : files_(spec) {}

  CompanyRun& calm(const Words& more = {}) {
    calm_ = std::make_unique<CompanyRun>(
        files_, "calm", Words{"--cluster.transport", "loopback", "--train.lanes", "2"} + more);
    EXPECT_EQ(calm_->wait(), 0) << calm_->output();
    return *calm_;
  }
  void expect_as_calm(CompanyRun& run, int steps = 10) {
    ASSERT_EQ(run.wait(), 0) << run.output() << run.log();
    EXPECT_TRUE(run.all_nodes_gone());
    expect_clean_ledger(run.folder());
    expect_same_bits(calm_->folder(), run.folder(), steps);
  }
  void expect_survives(const std::string& node, int signal, const Words& more = {}) {
    calm(more);
    CompanyRun run(files_, "struck", Words{"--actor.ranks", "2"} + more);
    const pid_t pid = run.node_after(node, 3);
    ASSERT_GT(pid, 0) << run.output();
    ASSERT_EQ(::kill(pid, signal), 0);
    expect_as_calm(run);
    EXPECT_NE(run.log().find("going on from "), std::string::npos) << run.log();
  }

  TinyRun files_;
  std::unique_ptr<CompanyRun> calm_;
};

// A model whose weights are several buckets, so that each rank serves some.
class WideGangs : public Gangs {
 protected:
  WideGangs() : Gangs(wide_llama()) {}
  static model::ModelSpec wide_llama() {
    model::ModelSpec spec = tiny_llama();
    spec.ffn = 4096;
    return spec;
  }
};

}  // namespace

TEST_F(Gangs, TwoRanksHaveTheBitsOfOneProcess) {
  calm();
  CompanyRun two(files_, "two", {"--actor.ranks", "2"});
  EXPECT_TRUE(within(30, [&] { return two.nodes().contains("policy-1"); })) << two.output();
  expect_as_calm(two);
  EXPECT_NE(two.log().find("2 ranks of the policy with 1 thread each"), std::string::npos)
      << two.log();
}

// The engine's weights come from both ranks, and every sample depends on them.
TEST_F(WideGangs, DividedMomentsAndWeightsHaveTheSameBits) {
  const Words few = {"--train.max_steps", "5"};
  calm(few);
  for (const char* stage : {"1", "3"}) {
    CompanyRun run(files_, std::string("stage-") + stage,
                   Words{"--actor.ranks", "2", "--train.zero_stage", stage} + few);
    expect_as_calm(run, 5);
  }
}

TEST_F(Gangs, ALostRankOfTheCriticChangesNoBit) {
  calm(kGae);
  CompanyRun run(files_, "struck", Words{"--critic.ranks", "2"} + kGae);
  const pid_t pid = run.node_after("critic-1", 3);
  ASSERT_GT(pid, 0) << run.output();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  expect_as_calm(run);
}

TEST_F(Gangs, AKilledRankChangesNoBit) {
  expect_survives("policy-1", SIGKILL);
}
TEST_F(Gangs, AFrozenRankChangesNoBit) {
  expect_survives("policy-1", SIGSTOP);
}
TEST_F(Gangs, AKilledRankZeroChangesNoBit) {
  expect_survives("policy", SIGKILL);
}

// The policy's second rank is lost while generators run ahead.
TEST_F(Gangs, AheadOfTheTrainerALossLosesAndDoublesNothing) {
  CompanyRun ahead(
      files_, "ahead",
      {"--actor.ranks", "2", "--train.staleness_max", "1", "--rollout.generators", "2"});
  const pid_t pid = ahead.node_after("policy-1", 4);
  ASSERT_GT(pid, 0) << ahead.output();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_EQ(ahead.wait(), 0) << ahead.output();
  expect_clean_ledger(ahead.folder());
  EXPECT_LE(oldest_age(ahead.folder()), 1u);
}

TEST_F(Gangs, TheNextHeadTakesAGangOverWhole) {
  calm();
  CompanyRun first(files_, "run", {"--actor.ranks", "2"});
  ASSERT_TRUE(first.await_steps(3)) << first.output();
  const auto ranks = first.nodes();
  first.signal(SIGKILL);
  EXPECT_EQ(first.wait(), 128 + SIGKILL);
  CompanyRun next(files_, "run", {"--actor.ranks", "2"});
  expect_as_calm(next);
  for (const char* rank : {"policy/0", "policy/1"})
    EXPECT_NE(next.log().find(std::string(rank) + " plays on"), std::string::npos) << next.log();
  EXPECT_TRUE(ranks.contains("policy-1"));
}

// A rank that died while there was no head: the others are of no use any more.
TEST_F(Gangs, TheNextHeadStartsATornGangAnew) {
  calm();
  CompanyRun first(files_, "run", {"--actor.ranks", "2"});
  ASSERT_TRUE(first.await_steps(3)) << first.output();
  const auto ranks = first.nodes();
  ASSERT_TRUE(ranks.contains("policy-1"));
  first.signal(SIGKILL);
  EXPECT_EQ(first.wait(), 128 + SIGKILL);
  ASSERT_EQ(::kill(ranks.at("policy-1"), SIGKILL), 0);
  CompanyRun next(files_, "run", {"--actor.ranks", "2"});
  expect_as_calm(next);
}

TEST_F(Gangs, WrongNumbersAreRefusedWithAWayOut) {
  const auto refused = [&](const Words& more, const Words& parts) {
    const Ended ended = troupe_ends(files_.words("none") + more, files_ / "none.out", 60);
    EXPECT_EQ(ended.status, 2) << ended.text;
    for (const std::string& part : parts)
      EXPECT_NE(ended.text.find(part), std::string::npos) << part << "\n" << ended.text;
  };
  refused({"--actor.ranks", "3", "--train.lanes", "2"},
          {"actor.ranks", "3 ranks, but train.lanes is 2", "--train.lanes 3"});
  refused({"--actor.ranks", "17"}, {"actor.ranks", "17 ranks", "only 16 samples"});
  refused({"--actor.ranks", "2", "--cluster.transport", "loopback"},
          {"actor.ranks", "--cluster.transport caf"});
  refused({"--actor.ranks", "2", "--actor.device", "cuda:0,cuda:0"},
          {"actor.device", "cuda:0 twice"});
  refused({"--actor.ranks", "2", "--actor.device", "cuda"}, {"actor.device", "1 device(s) for 2"});
  refused(kGae + Words{"--critic.ranks", "3", "--train.lanes", "2"},
          {"critic.ranks", "3 ranks, but train.lanes is 2", "--train.lanes 3"});
  refused(kGae + Words{"--critic.ranks", "17"}, {"critic.ranks", "17 ranks", "only 16 samples"});
  refused(kGae + Words{"--critic.ranks", "2", "--critic.device", "cuda:1,cuda:1"},
          {"critic.device", "cuda:1 twice"});
  refused({"--actor.ranks", "2", "--train.zero_stage", "4"}, {"train.zero_stage", "4", "3"});
}

}  // namespace troupe::test
