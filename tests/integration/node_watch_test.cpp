// What the head knows of its nodes: what they print, their figures, who was lost, who is sick.
#include "tests/integration/join_support.hpp"

namespace troupe::test {
namespace {

class NodeWatch : public Joining {
 protected:
  const Words endless_ = {"--train.max_steps", "100000", "--ckpt.save_steps", "100000"};

  void TearDown() override { ::unsetenv("TROUPE_FAULTS"); }
  std::string folder() const { return (files_ / "run").string(); }
  Background node(const std::string& name) {
    return start({"node", "--join", folder(), "--roles", "generator", "--name", name}, name);
  }
  std::string page() {
    const Ended shown = ends({"status", "--join", folder()});
    EXPECT_EQ(shown.status, 0) << shown.text;
    return shown.text;
  }
  nlohmann::json status() {
    const Ended shown = ends({"status", "--join", folder(), "--json"});
    EXPECT_EQ(shown.status, 0) << shown.text;
    return nlohmann::json::parse(shown.text, nullptr, false);
  }
  static nlohmann::json named(const nlohmann::json& list, const std::string& name) {
    for (const auto& one : list)
      if (one.value("name", "") == name) return one;
    return nlohmann::json::object();
  }
  std::string node_log(const std::string& name) {
    return text_of(files_ / "run" / "nodes" / (name + ".log"));
  }
};

}  // namespace

TEST_F(NodeWatch, WhatAJoinedNodePrintsIsInTheRunFolderAndShownWhenItIsLost) {
  Background run = head("run", endless_);
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background far = node("far");
  ASSERT_TRUE(within(40,
                     [&] {
                       return node_log("far").find("started generator/1\n") != std::string::npos &&
                              updates_of("run") > 1;
                     }))
      << run.text() << far.text();
  EXPECT_NE(node_log("far").find("node/far is in the company of "), std::string::npos);
  EXPECT_NE(node_log("generator-0").find("started generator/0\n"), std::string::npos)
      << "a local node writes its own";
  far.kill();
  ASSERT_TRUE(within(20, [&] { return run.says("node/far is lost: "); })) << run.text();
  EXPECT_TRUE(run.says("; its last lines: ")) << run.text();
  EXPECT_TRUE(log_says("run", "started generator/1")) << run.text();
  const nlohmann::json lost = named(status()["lost"], "node/far");
  ASSERT_TRUE(lost.contains("last_lines")) << lost;
  EXPECT_EQ(lost["last_lines"].back(), "started generator/1");
  EXPECT_NE(page().find("  | started generator/1\n"), std::string::npos);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
}

TEST_F(NodeWatch, ALocalNodeThatIsKilledIsShownWithWhatItHadWritten) {
  Background run = head("run", endless_);
  ASSERT_TRUE(within(40, [&] { return updates_of("run") > 1; })) << run.text();
  const auto pid = named(status()["nodes"], "node/generator-0").value("pid", 0);
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(within(20, [&] { return run.says("node/generator-0 is lost: "); })) << run.text();
  const nlohmann::json lost = named(status()["lost"], "node/generator-0");
  ASSERT_TRUE(lost.contains("last_lines")) << lost;
  EXPECT_EQ(lost["last_lines"].back(), "started generator/0");
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
}

TEST_F(NodeWatch, FiguresComeWithTheSignsOfLifeAndAFrozenNodeDelaysNoAnswer) {
  Background run = head("run", endless_);
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background far = node("far");
  nlohmann::json now;
  ASSERT_TRUE(within(40,
                     [&] {
                       now = status();
                       const auto amounts =
                           named(now["roles"], "generator/1").value("amounts", nlohmann::json());
                       return amounts.is_object() && amounts.value("tokens_per_s", 0.0) > 0;
                     }))
      << run.text() << far.text();
  const nlohmann::json role = named(now["roles"], "generator/1");
  EXPECT_GT(role["amounts"].value("kv_blocks", 0.0), 0) << role;
  EXPECT_TRUE(role.contains("age_s")) << role;
  EXPECT_GT(named(now["nodes"], "node/far").value("memory_bytes", 0ull), 1u << 20) << now;
  far.signal(SIGSTOP);
  ASSERT_TRUE(within(20, [&] {
    now = status();
    return !named(now["lost"], "node/far").empty();
  })) << run.text();
  EXPECT_TRUE(named(now["roles"], "generator/0").contains("age_s")) << now;
  far.kill();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
}

TEST_F(NodeWatch, AnEngineThatIsSickIsShownWithTheTimeUntilItsNextStart) {
  ::setenv("TROUPE_FAULTS", "generator/1 step resources 5, generator/1 step internal 8", 1);
  Background run = head("run", endless_ + Words{"--rollout.generators", "2"});
  nlohmann::json part;
  ASSERT_TRUE(within(40, [&] {
    const Ended shown = ends({"status", "--join", folder(), "--json"});
    if (shown.status != 0) return false;
    part = named(nlohmann::json::parse(shown.text, nullptr, false)["cast"], "generator/1");
    return part.value("sick", false) && part.value("starts_in_s", 0.0) > 1;
  })) << run.text();
  EXPECT_EQ(part["state"], "wanted");
  EXPECT_NE(part.value("last_cause", "").find("step 8 fails"), std::string::npos) << part;
  const std::string shown = page();
  EXPECT_NE(shown.find("generator/1 is started again in "), std::string::npos) << shown;
  EXPECT_NE(shown.find("; it was sick: step 8 fails"), std::string::npos) << shown;
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
}

}  // namespace troupe::test
