// A policy of four ranks over two hosts, one of which is cut off and comes back, and under a head
// that is lost: the bits of one process.
#include "join_gangs_support.hpp"

namespace troupe::test {
namespace {

class JoinGangsDay : public JoinGangs {};

TEST_F(JoinGangsDay, APulledCableCostsTheGangItsRanksThereUntilItIsBackAndNoBit) {
  // A reward that waits while there is such a file, so that the run does not end meanwhile.
  const auto hold = files_ / "hold";
  std::ofstream(files_ / "reward.py") << "import os, time\n"
                                         "def reward_func(queries, prompts, labels):\n"
                                         "    while os.path.exists('"
                                      << hold.string()
                                      << "'):\n        time.sleep(0.02)\n"
                                         "    return [float(len(q) % 5) for q in queries]\n";
  const Words words = {
      "--train.max_steps",     "60", "--ckpt.save_steps",   "5",
      "--reward.rule",         "",   "--reward.deadline_s", "1000",
      "--reward.rule_pattern", "",   "--reward.python",     (files_ / "reward.py").string()};
  run_alone(words);
  Background run = gang(words);
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background far = rank_node("far", hosts_.b(), {"--ranks", "2"});
  ASSERT_TRUE(within(60, [&] { return updates_of("run") > 2; })) << run.text() << far.text();
  ASSERT_TRUE(hosts_.unplug());
  ASSERT_TRUE(within(40, [&] { return run.says("policy continues with 2 of its 4 ranks"); }))
      << run.text();
  const std::size_t done = updates_of("run");
  EXPECT_TRUE(within(40, [&] { return updates_of("run") > done + 1; })) << run.text();
  std::ofstream(hold) << "yes";
  ASSERT_TRUE(hosts_.plug());
  EXPECT_TRUE(within(60, [&] {
    return run.says("policy has a node again for each of its 4 ranks; it starts with all");
  })) << run.text();
  EXPECT_FALSE(run.says("ranks; going on from the last checkpoint")) << "not between two of them";
  std::filesystem::remove(hold);
  EXPECT_TRUE(within(60, [&] {
    return run.says("policy has a node again for each of its 4 ranks; going on from the last");
  })) << run.text();
  EXPECT_EQ(run.wait(120), 0) << run.text() << far.text();
  EXPECT_EQ(far.wait(10), 0) << far.text();
  expect_same_bits("run", "local");
  expect_clean_ledger("run");
}

// Their connections end with the head that carried them, so the next one cannot take them over.
TEST_F(JoinGangsDay, ThroughTheGatewayTheyEndWithTheHeadAndStartAnewUnderTheNext) {
  const Words words = {"--train.max_steps", "40", "--ckpt.save_steps", "7"};
  run_alone(words);
  Background killed = gang(words);
  ASSERT_FALSE(company_of("run").empty()) << killed.text();
  Background far = rank_node("far", hosts_.b(), {"--ranks", "2"});
  ASSERT_TRUE(within(60, [&] { return updates_of("run") > 10; })) << killed.text() << far.text();
  killed.signal(SIGKILL);
  killed.wait(10);
  ASSERT_LT(updates_of("run"), 40u);
  Background run = gang(words);
  EXPECT_EQ(run.wait(120), 0) << run.text() << far.text();
  EXPECT_EQ(far.wait(10), 0) << far.text();
  EXPECT_TRUE(run.says("going on from the last checkpoint")) << run.text();
  expect_same_bits("run", "local");
  expect_clean_ledger("run");
}

}  // namespace
}  // namespace troupe::test
