// A policy of four ranks over several hosts: the bits of one process. (join_gangs_day_test.cpp has
// a host that is cut off and comes back, and a head that is lost.)
#include "join_gangs_support.hpp"

namespace troupe::test {
namespace {

TEST_F(JoinGangs, FourRanksOverTwoHostsThatTrustTheirNetworkHaveTheBitsOfOneProcess) {
  run_alone({});
  Background run = gang({"--cluster.trusted_network", "10.213.77.0/24"});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  EXPECT_TRUE(within(20, [&] { return run.says("waiting for nodes that run policy"); }))
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
  within(90, [&] {
    EXPECT_LE(all_ports({&run}).size(), 3u) << "gateway, status and, on loopback, the weights";
    EXPECT_TRUE(all_ports({&one, &other}).empty()) << "a rank listens in the clear";
    return !run.running();
  });
  EXPECT_EQ(run.wait(10), 0) << run.text() << one.text() << other.text();
  EXPECT_EQ(one.wait(10), 0) << one.text();
  EXPECT_EQ(other.wait(10), 0) << other.text();
  EXPECT_FALSE(log_says("run", "policy/1 is lost")) << run.text();
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
