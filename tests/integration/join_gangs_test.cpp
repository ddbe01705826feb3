// A policy of four ranks over several hosts: the bits of one process, also when one host is cut off
// and comes back.
#include "tests/integration/join_support.hpp"

namespace troupe::test {
namespace {

class JoinGangs : public Joining {
 protected:
  void SetUp() override {
    if (!hosts_.why_not().empty()) GTEST_SKIP() << hosts_.why_not();
  }
  // One process, with as many lanes.
  void run_alone(const Words& more) {
    const Ended local =
        ends(files_.words("local") +
                 Words{"--cluster.transport", "loopback", "--train.lanes", "4"} + more,
             120);
    ASSERT_EQ(local.status, 0) << local.text;
  }
  // Two ranks at the head's host, two elsewhere.
  Background gang(const Words& more) {
    return head("run",
                Words{"--cluster.listen", TwoHosts::address_a() + ":0", "--actor.ranks", "4",
                      "--cluster.local_ranks", "2"} +
                    more,
                hosts_.a());
  }
  Background rank_node(const std::string& name, int host, const Words& more = {}) {
    return start(Words{"node", "--join", address_of("run"), "--token-file", token_of("run"),
                       "--roles", "policy", "--name", name} +
                     more,
                 name, host);
  }
  // TCP ports on which these processes and their children listen.
  static std::set<std::uint16_t> all_ports(std::initializer_list<const Background*> processes) {
    std::set<std::uint16_t> ports;
    for (const Background* const one : processes) {
      ports.merge(ports_of(one->pid()));
      for (const pid_t child : children_of(one->pid()))
        ports.merge(ports_of(child));
    }
    return ports;
  }

  TwoHosts hosts_;
};

TEST_F(JoinGangs, FourRanksOverTwoHostsThatTrustTheirNetworkHaveTheBitsOfOneProcess) {
  run_alone({});
  Background run = gang({"--cluster.trusted_network", "10.213.77.0/24"});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  EXPECT_TRUE(within(20, [&] { return run.says("waiting for nodes that play policy"); }))
      << run.text();
  Background far = rank_node("far", hosts_.b(), {"--ranks", "2"});
  EXPECT_EQ(run.wait(90), 0) << run.text() << far.text();
  EXPECT_EQ(far.wait(10), 0) << far.text();
  expect_same_bits("run", "local");
  expect_clean_ledger("run");
}

// Two ranks with the head and one on each of two hosts that cannot reach each other.
TEST_F(JoinGangs, WithoutATrustedNetworkTheirBytesGoThroughTheGateway) {
  ASSERT_TRUE(hosts_.add_third());
  run_alone({});
  Background run = gang({});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background one = rank_node("one", hosts_.b()), other = rank_node("other", hosts_.c());
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  while (run.running() && std::chrono::steady_clock::now() < limit && !run.wait(0.05)) {
    EXPECT_LE(all_ports({&run}).size(), 3u) << "gateway, status and, on loopback, the weights";
    EXPECT_TRUE(all_ports({&one, &other}).empty()) << "a rank listens in the clear";
  }
  EXPECT_EQ(run.wait(1), 0) << run.text() << one.text() << other.text();
  EXPECT_EQ(one.wait(10), 0) << one.text();
  EXPECT_EQ(other.wait(10), 0) << other.text();
  EXPECT_FALSE(log_says("run", "policy/1 is lost")) << run.text();
  expect_same_bits("run", "local");
  expect_clean_ledger("run");
}

TEST_F(JoinGangs, APulledCableCostsTheGangItsRanksThereUntilItIsBackAndNoBit) {
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
  ASSERT_TRUE(within(40, [&] { return run.says("policy goes on with 2 of its 4 ranks"); }))
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
TEST_F(JoinGangs, ThroughTheGatewayTheyEndWithTheHeadAndStartAnewUnderTheNext) {
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

TEST_F(JoinGangs, AHostWithoutAnAddressInTheNetworkIsNamed) {
  const Ended ended =
      ends(files_.words("none") +
               Words{"--actor.ranks", "2", "--cluster.trusted_network", "203.0.113.0/24"},
           60);
  EXPECT_EQ(ended.status, 2) << ended.text;
  EXPECT_NE(ended.text.find("no address in the network 203.0.113.0/24"), std::string::npos)
      << ended.text;
}

}  // namespace
}  // namespace troupe::test
