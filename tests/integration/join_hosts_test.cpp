// A run over two hosts: nodes join in any order, by token or by certificate, sample for the run
// with weights that come through the gateway, and are missed when the cable is pulled.
#include "runtime/net/limits.hpp"
#include "runtime/net/tunnel.hpp"
#include "tests/integration/join_support.hpp"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>

namespace troupe::test {
namespace {

class JoinHosts : public Joining {
 protected:
  void SetUp() override {
    if (!hosts_.why_not().empty()) GTEST_SKIP() << hosts_.why_not();
  }
  Words listening() const { return {"--cluster.listen", TwoHosts::address_a() + ":0"}; }
  Words node(const std::string& join, const std::string& roles, const std::string& name) {
    return {"node", "--join", join, "--roles", roles, "--name", name};
  }

  // Garbage and wrong proofs from the node's address, as any user of its host could send them: more
  // than lock an unknown address out.
  void strangers_at_the_gateway(std::uint16_t port) {
    std::thread([&] {
      ASSERT_EQ(::setns(hosts_.b(), CLONE_NEWNET), 0);
      for (std::uint64_t i = 0; i < 2 * net::limits::kGatewayFailures_max; ++i) {
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = ::inet_addr(TwoHosts::address_a().c_str());
        to.sin_port = htons(port);
        EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
        EXPECT_EQ(::send(socket, "no TLS\n", 7, MSG_NOSIGNAL), 7);
        char byte = 0;
        EXPECT_LE(::recv(socket, &byte, 1, 0), 1);  // it has been heard
        ::close(socket);
      }
      async::IoThreads io(1);
      net::GatewayAuth wrong;
      wrong.token = std::string(64, 'b');
      for (std::uint64_t i = 0; i < 2 * net::limits::kGatewayFailures_max; ++i) {
        EXPECT_FALSE(net::Tunnel::open(io, TwoHosts::address_a(), port, wrong, "weights",
                                       net::limits::kTunnelConnect));
      }
    }).join();
  }

  TwoHosts hosts_;
};

TEST_F(JoinHosts, ANodeThatSamplesEverythingGivesTheBitsOfALocalRun) {
  const Ended local = ends(files_.words("local"), 60);
  ASSERT_EQ(local.status, 0) << local.text;
  Background head_process =
      head("far", listening() + Words{"--rollout.generators", "0"}, hosts_.a());
  ASSERT_TRUE(company_of("far").is_object()) << head_process.text();
  Background far =
      start(node(address_of("far"), "generator", "far") + Words{"--token-file", token_of("far")},
            "node", hosts_.b());
  ASSERT_TRUE(within(20, [&] { return head_process.says("node/far joined"); })) << far.text();
  strangers_at_the_gateway(static_cast<std::uint16_t>(company_of("far").value("port", 0)));
  EXPECT_TRUE(ports_of(far.pid()).empty()) << "a local stranger would find them";
  EXPECT_EQ(head_process.wait(60), 0) << head_process.text() << far.text();
  EXPECT_EQ(far.wait(10), 0) << far.text();
  EXPECT_TRUE(head_process.says("node/far joined")) << head_process.text();
  expect_same_bits("far", "local");
  expect_clean_ledger("far");
}

// A node opens the port that it was told to for nodes of other hosts, and no other thing changes.
TEST_F(JoinHosts, ANodeThatMayPassWeightsOnGivesTheBitsOfALocalRun) {
  const Ended local = ends(files_.words("local"), 60);
  ASSERT_EQ(local.status, 0) << local.text;
  Background run = head("shared", listening() + Words{"--rollout.generators", "0"}, hosts_.a());
  ASSERT_TRUE(company_of("shared").is_object()) << run.text();
  const Words proof = {"--token-file", token_of("shared")};
  Background relay = start(node(address_of("shared"), "generator", "relay") + proof +
                               Words{"--relay", TwoHosts::address_b() + ":0"},
                           "relay", hosts_.b());
  ASSERT_TRUE(within(20, [&] { return run.says("node/relay joined"); })) << relay.text();
  EXPECT_FALSE(ports_of(relay.pid()).empty());
  EXPECT_EQ(run.wait(60), 0) << run.text() << relay.text();
  EXPECT_EQ(relay.wait(10), 0) << relay.text();
  expect_same_bits("shared", "local");
  expect_clean_ledger("shared");
}

TEST_F(JoinHosts, AllRolesButThePolicyMayPlayElsewhere) {
  const Ended local = ends(files_.words("local"), 60);
  ASSERT_EQ(local.status, 0) << local.text;
  Background run = head("run", listening() + Words{"--cluster.local_roles", "policy"}, hosts_.a());
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  const Words proof = {"--token-file", token_of("run")};
  Background far =
      start(node(address_of("run"), "generator,reward", "far") + proof, "node", hosts_.b());
  Background other =
      start(node(address_of("run"), "reference", "other") + proof, "other", hosts_.b());
  EXPECT_EQ(run.wait(60), 0) << run.text() << far.text() << other.text();
  EXPECT_EQ(far.wait(10), 0) << far.text();
  EXPECT_EQ(other.wait(10), 0) << other.text();
  expect_same_bits("run", "local");
  expect_clean_ledger("run");
}

TEST_F(JoinHosts, ANodeMayWaitForItsCompanyAndProveItselfByACertificate) {
  const auto certificates = [&](const std::string& name) {
    const std::string folder = (files_ / name).string();
    EXPECT_EQ(ends({"ca", "init", "--out", folder, "--hosts", TwoHosts::address_a()}).status, 0);
    return folder;
  };
  const std::string ours = certificates("ca"), theirs = certificates("other");
  const auto proof = [](const std::string& folder, const std::string& prefix) {
    return Words{prefix + "ca",        folder + "/ca.crt", prefix + "certificate",
                 folder + "/node.crt", prefix + "key",     folder + "/node.key"};
  };
  const std::string gateway = TwoHosts::address_a() + ":7700";
  Background far = start(node(gateway, "generator", "far") + proof(ours, "--"), "node", hosts_.b());
  ASSERT_TRUE(within(20, [&] { return far.says("tries again"); })) << far.text();
  Background run = head("run",
                        Words{"--cluster.listen", gateway, "--rollout.generators", "0",
                              "--train.max_steps", "100000", "--ckpt.save_steps", "100000"} +
                            proof(ours, "--cluster."),
                        hosts_.a());
  ASSERT_TRUE(within(40, [&] { return updates_of("run") > 1; })) << run.text() << far.text();

  const Ended stranger =
      ends(Words{"status", "--join", gateway} + proof(theirs, "--"), 20, hosts_.b());
  EXPECT_TRUE(stranger.status == 5 || stranger.status == 2) << stranger.text;
  EXPECT_NE(stranger.text.find("certificate"), std::string::npos) << stranger.text;
  const Ended friendly =
      ends(Words{"status", "--join", gateway} + proof(ours, "--"), 20, hosts_.b());
  EXPECT_EQ(friendly.status, 0) << friendly.text;
  EXPECT_NE(friendly.text.find("far"), std::string::npos) << friendly.text;
  const std::string token = (files_ / "token").string();
  std::ofstream(token) << std::string(64, 'a') << "\n";
  ::chmod(token.c_str(), 0600);
  const Ended by_token = ends({"status", "--join", gateway, "--token-file", token}, 20, hosts_.b());
  EXPECT_NE(by_token.status, 0) << "a token opens no gateway that asks for certificates";
  EXPECT_TRUE(run.says("refused at the gateway: " + TwoHosts::address_b())) << run.text();

  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
  EXPECT_EQ(far.wait(15), 0) << far.text();
  expect_clean_ledger("run");
}

TEST_F(JoinHosts, APulledCableCostsTheNodeAndNotTheRun) {
  Background run =
      head("run", listening() + Words{"--train.max_steps", "100000", "--ckpt.save_steps", "100000"},
           hosts_.a());
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background far =
      start(node(address_of("run"), "generator", "far") + Words{"--token-file", token_of("run")},
            "node", hosts_.b());
  Background rewards =
      start(node(address_of("run"), "reward", "rewards") + Words{"--token-file", token_of("run")},
            "rewards", hosts_.b());
  ASSERT_TRUE(
      within(40, [&] { return updates_of("run") > 1 && log_says("run", "generator/1 is up"); }))
      << run.text() << far.text();
  ASSERT_TRUE(within(20, [&] { return rewards.says("is in the company"); })) << rewards.text();
  const double idle_mb = rewards.memory_mb("VmRSS:");
  std::printf("a node without a model takes %.0f MiB\n", idle_mb);
  EXPECT_LE(idle_mb, 240);

  ASSERT_TRUE(hosts_.unplug());
  ASSERT_TRUE(within(20, [&] { return run.says("node/far is lost: frozen"); })) << run.text();
  const std::size_t done = updates_of("run");
  EXPECT_TRUE(within(20, [&] { return updates_of("run") > done + 1; })) << run.text();
  ASSERT_TRUE(hosts_.plug());
  EXPECT_TRUE(within(40, [&] { return log_says("run", "generator/2 is up"); }))
      << run.text() << far.text();

  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
  EXPECT_EQ(far.wait(15), 0) << far.text();
  expect_clean_ledger("run");
}

}  // namespace
}  // namespace troupe::test
