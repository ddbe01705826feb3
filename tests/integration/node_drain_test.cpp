// Nodes that leave because they are asked to: their work is finished or moved, they end with 0 and
// are not started again, and the run has the bits of one that nobody left.
#include "company_support.hpp"
#include "tests/integration/join_support.hpp"

namespace troupe::test {
namespace {

class NodeDrain : public Joining {
 protected:
  const Words steps_ = {"--train.max_steps", "60", "--ckpt.save_steps", "20"};

  std::string folder() const { return (files_ / "run").string(); }
  Background node(const std::string& name, const std::string& roles = "generator") {
    return start({"node", "--join", folder(), "--roles", roles, "--name", name}, name);
  }
  Ended drain(const std::string& name, const Words& more = {}) {
    return ends(Words{"node", "drain", name, "--join", folder()} + more, 60);
  }
  bool await_generators(std::size_t count, Background& run) {
    return within(40, [&] {
      const std::string log = text_of(files_ / "run" / "troupe.log");
      std::size_t up = 0;
      for (std::size_t i = 0; i < count; ++i)
        up += log.find("generator/" + std::to_string(i) + " is up") != std::string::npos ? 1 : 0;
      return (up == count && updates_of("run") > 1) || !run.running();
    });
  }
  void expect_bits_of_a_calm_run() {
    const Ended calm = ends(files_.words("calm") + steps_, 60);
    ASSERT_EQ(calm.status, 0) << calm.text;
    Joining::expect_same_bits("run", "calm", "async/generators");
    Joining::expect_clean_ledger("run");
  }
};

}  // namespace

TEST_F(NodeDrain, AJoinedNodeFinishesAndEndsAndTheRunKeepsItsBits) {
  Background run = head("run", steps_ + Words{"--rollout.generators", "0"});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background a = node("a"), b = node("b");
  ASSERT_TRUE(await_generators(2, run)) << run.text() << a.text() << b.text();

  const Ended unknown = drain("c");
  EXPECT_EQ(unknown.status, 2) << unknown.text;
  EXPECT_NE(unknown.text.find("there is no node c in this run\n"), std::string::npos)
      << unknown.text;
  EXPECT_NE(unknown.text.find("its nodes are a, b, policy"), std::string::npos) << unknown.text;
  const Ended policy = drain("policy");
  EXPECT_EQ(policy.status, 2) << policy.text;
  EXPECT_NE(policy.text.find("node/policy cannot be drained: it has policy/0"), std::string::npos)
      << policy.text;

  const Ended left = drain("b");
  ASSERT_EQ(left.status, 0) << left.text << run.text();
  EXPECT_NE(left.text.find("node b has left the run"), std::string::npos) << left.text;
  EXPECT_EQ(b.wait(10), 0) << b.text();
  EXPECT_TRUE(b.says("the company has dismissed node/b")) << b.text();
  const Ended again = drain("node/b");
  EXPECT_EQ(again.status, 0) << again.text;
  const Ended last = drain("a");
  EXPECT_EQ(last.status, 2) << last.text;
  EXPECT_NE(last.text.find("no other node has a generator that is up"), std::string::npos)
      << last.text;

  const std::size_t done = updates_of("run");
  EXPECT_LT(done, 60u) << "the run was too short to show anything";
  EXPECT_EQ(run.wait(60), 0) << run.text();
  EXPECT_EQ(a.wait(10), 0) << a.text();
  EXPECT_TRUE(log_says("run", "node/b has left")) << run.text();
  EXPECT_FALSE(log_says("run", "node/b is lost")) << run.text();
  expect_bits_of_a_calm_run();
}

TEST_F(NodeDrain, ALocalNodeIsNotStartedAgain) {
  CompanyRun run(files_, "run", steps_ + Words{"--rollout.generators", "2"});
  ASSERT_GT(run.node_after("generator-1", 2), 0) << run.output();
  const Ended left = drain("generator-1");
  ASSERT_EQ(left.status, 0) << left.text << run.output();
  const std::size_t done = run.steps();
  ASSERT_TRUE(run.await_steps(done + 5)) << run.output();
  EXPECT_FALSE(run.nodes().contains("generator-1"));
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_EQ(run.log().find("node/generator-1 is lost"), std::string::npos) << run.log();
  EXPECT_TRUE(run.all_nodes_gone());
  expect_bits_of_a_calm_run();
}

// A node that thaws when the run is over finds nobody to dismiss it, so the run waits meanwhile:
// for its reference, which is frozen, too.
TEST_F(NodeDrain, AFrozenNodeIsLetGoAndEndsWhenItThaws) {
  Background run = head("run", steps_ + Words{"--rollout.generators", "1", "--cluster.local_roles",
                                              "policy,generator,reward"});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background reference = node("reference", "reference"), b = node("b");
  ASSERT_TRUE(await_generators(2, run)) << run.text() << b.text() << reference.text();
  reference.signal(SIGSTOP);
  b.signal(SIGSTOP);
  const Ended left = drain("b", {"--wait-s", "3"});
  EXPECT_EQ(left.status, 0) << left.text << run.text();
  b.signal(SIGCONT);
  EXPECT_EQ(b.wait(30), 0) << b.text() << run.text();
  EXPECT_TRUE(run.running()) << "the run was too short to show anything";
  reference.signal(SIGCONT);
  EXPECT_EQ(run.wait(60), 0) << run.text();
  expect_bits_of_a_calm_run();
}

TEST_F(NodeDrain, AReferenceMovesToTheNodeThatStays) {
  Background run = head("run", steps_ + Words{"--cluster.local_roles", "policy,generator,reward"});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background one = node("one", "reference");
  ASSERT_TRUE(within(40, [&] { return updates_of("run") > 1; })) << run.text() << one.text();
  const Ended alone = drain("one");
  EXPECT_EQ(alone.status, 2) << alone.text;
  EXPECT_NE(alone.text.find("no other node can take reference/0"), std::string::npos) << alone.text;
  Background two = node("two", "reference");
  ASSERT_TRUE(within(20, [&] { return two.says("is in the company"); })) << two.text();
  const Ended left = drain("one");
  EXPECT_EQ(left.status, 0) << left.text << run.text();
  EXPECT_EQ(one.wait(10), 0) << one.text();
  EXPECT_EQ(run.wait(60), 0) << run.text();
  EXPECT_TRUE(two.says("started reference/0")) << two.text();
  expect_bits_of_a_calm_run();
}

TEST_F(NodeDrain, TheCommandSaysWhatIsMissing) {
  const Ended none = ends({"node", "drain", "--join", folder()});
  EXPECT_EQ(none.status, 2) << none.text;
  EXPECT_NE(none.text.find("which node?"), std::string::npos) << none.text;
  const Ended no_run = drain("b");
  EXPECT_EQ(no_run.status, 2) << no_run.text;
  EXPECT_NE(no_run.text.find("--join"), std::string::npos) << no_run.text;
  const Ended help = ends({"node", "drain", "--help"});
  EXPECT_EQ(help.status, 0) << help.text;
  EXPECT_NE(help.text.find("--wait-s"), std::string::npos) << help.text;
}

}  // namespace troupe::test
