// Strangers take no files from a run: under small limits on open files, with silent connections to
// all its ports, it computes the bits of a calm one.
#include "few_files_support.hpp"

namespace troupe::test {
namespace {

class FewFiles : public Joining {
 protected:
  // A run to its end, with a crowd at its ports from its first update on.
  void run_in_a_crowd(const std::string& name, const Words& words, std::size_t updates) {
    Background run(words, files_ / (name + ".head.log"));
    ASSERT_TRUE(within(60, [&] { return updates_of(name) >= updates || !run.running(); }))
        << run.text();
    const std::set<std::uint16_t> ports = ports_of_run(run.pid());
    EXPECT_GE(ports.size(), 3u) << "gateway, status, weights";
    const SilentCrowd crowd(ports, 300);
    EXPECT_EQ(run.wait(60).value_or(-1), 0) << run.text();
    EXPECT_GT(crowd.opened(), 3u * 200);
  }
};

}  // namespace

TEST_F(FewFiles, StrangersTakeNoneFromARun) {
  ASSERT_EQ(ends(files_.words("calm"), 60).status, 0);
  for (const int limit : {64, 128, 256}) {
    const std::string name = "crowd" + std::to_string(limit);
    run_in_a_crowd(name, limited("-n " + std::to_string(limit), files_.words(name)), 1);
    expect_same_bits(name, "calm");
    expect_clean_ledger(name);
  }
}

// All sampling is done by a node that has few. At the gateway it comes behind a crowd of many times
// what the head may take.
TEST_F(FewFiles, ANodeWithFewComesInAndSamples) {
  ASSERT_EQ(ends(files_.words("calm"), 60).status, 0);
  const Words words = files_.words("run") + Words{"--rollout.generators", "0"};
  Background run(limited("-n 128", words), files_ / "run.head.log");
  ASSERT_TRUE(within(60, [&] { return company_of("run").contains("port"); })) << run.text();
  const SilentCrowd crowd(ports_of_run(run.pid()), 300);
  Background node(limited("-n 64", {"node", "--join", address_of("run"), "--token-file",
                                    token_of("run"), "--roles", "generator", "--name", "few"}),
                  files_ / "node.log");
  EXPECT_EQ(run.wait(90).value_or(-1), 0) << run.text() << node.text();
  EXPECT_EQ(node.wait(30).value_or(-1), 0) << node.text();
  expect_same_bits("run", "calm");
}

// A port among those that the system gives to outgoing connections, taken by somebody else.
TEST_F(FewFiles, ATakenPortIsExplainedAndLeavesNoFolder) {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const Ended ended = ends(files_.words("run") + Words{"--cluster.status_listen", port}, 60);
  ::close(taken);
  EXPECT_EQ(ended.status, 3) << ended.text;
  EXPECT_NE(ended.text.find("--cluster.status_listen"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("outgoing connections"), std::string::npos) << ended.text;
  EXPECT_FALSE(std::filesystem::exists(files_ / "run"));
}

}  // namespace troupe::test
