// Policy and critic over several ranks: the bits of one process, whatever becomes of a rank or a
// head. (company_gangs_day_test.cpp has more losses, tests/ranks every number of ranks and every
// stage.)
#include "company_gangs_support.hpp"

namespace troupe::test {
namespace {

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
  CompanyRun run(files_, "run", Words{"--actor.ranks", "2", "--train.zero_stage", "3"} + few);
  expect_as_calm(run, 5);
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
    EXPECT_NE(next.log().find(std::string(rank) + " keeps running"), std::string::npos)
        << next.log();
  EXPECT_TRUE(ranks.contains("policy-1"));
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
