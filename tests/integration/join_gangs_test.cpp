// A policy of four ranks over two hosts: the bits of one process, also when one host is cut off and
// comes back.
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
                      "--cluster.local_ranks", "2", "--cluster.trusted_network", "10.213.77.0/24"} +
                    more,
                hosts_.a());
  }
  Background rank_node(const std::string& name) {
    return start({"node", "--join", address_of("run"), "--token-file", token_of("run"), "--roles",
                  "policy", "--name", name},
                 name, hosts_.b());
  }

  TwoHosts hosts_;
};

TEST_F(JoinGangs, FourRanksOverTwoHostsHaveTheBitsOfOneProcess) {
  run_alone({});
  Background run = gang({});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  EXPECT_TRUE(within(20, [&] { return run.says("waiting for nodes that play policy"); }))
      << run.text();
  Background one = rank_node("one"), two = rank_node("two");
  EXPECT_EQ(run.wait(90), 0) << run.text() << one.text() << two.text();
  EXPECT_EQ(one.wait(10), 0) << one.text();
  EXPECT_EQ(two.wait(10), 0) << two.text();
  expect_same_bits("run", "local");
  expect_clean_ledger("run");
}

TEST_F(JoinGangs, APulledCableCostsTheGangItsRanksThereAndNoBit) {
  const Words length = {"--train.max_steps", "60"};
  run_alone(length);
  Background run = gang(length);
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background one = rank_node("one"), two = rank_node("two");
  ASSERT_TRUE(within(60, [&] { return updates_of("run") > 2; })) << run.text() << one.text();
  ASSERT_TRUE(hosts_.unplug());
  ASSERT_TRUE(within(40, [&] { return run.says("policy goes on with 2 of its 4 ranks"); }))
      << run.text();
  const std::size_t done = updates_of("run");
  EXPECT_TRUE(within(40, [&] { return updates_of("run") > done + 1; })) << run.text();
  ASSERT_TRUE(hosts_.plug());
  EXPECT_EQ(run.wait(120), 0) << run.text() << one.text() << two.text();
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
