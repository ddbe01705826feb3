// A node that is drained finishes, leaves and does not come back; one that the run needs stays.
#include "tests/unit/actors/company/company_stage.hpp"

namespace troupe::actors::testing {
namespace {

using std::chrono::seconds;

std::vector<company::LocalNode> drain_nodes() {
  return {{"node/generator-0", {"generator"}},
          {"node/generator-1", {"generator"}},
          {"node/policy", {"policy"}},
          {"node/reward", {"reward"}}};
}
std::vector<company::WantedRole> drain_roles() {
  return {{"policy", "policy/0", "node/policy"},
          {"reward", "reward/0", "node/reward"},
          {"reference", "reference/0", ""},
          {"generator", "generator/0", "node/generator-0"},
          {"generator", "generator/1", "node/generator-1"}};
}

class CompanyDrain : public ::testing::Test {
 protected:
  void SetUp() override {
    stage_.guest("node/a", {"generator", "reference"}, 11);
    stage_.run_for(seconds(5));
    ASSERT_EQ(stage_.place_of("reference/0").first, "node/a");
    ASSERT_EQ(stage_.place_of("generator/2").first, "node/a");
  }
  bool said(const std::string& note) const {
    return std::find(stage_.notes().begin(), stage_.notes().end(), note) != stage_.notes().end();
  }
  std::string refusal(const std::string& node) {
    auto answer = stage_.drain(node);
    stage_.run_for(seconds(1));
    EXPECT_TRUE(answer.done());
    return !answer.done() || answer.value() ? "" : answer.value().error().message;
  }
  company::RoleState state_of(const std::string& role) const {
    return stage_.company().placement().find(role)->state;
  }

  CompanyStage stage_{21, drain_nodes(), drain_roles()};
};

}  // namespace

TEST_F(CompanyDrain, ALocalGeneratorFinishesAndItsNodeIsNotStartedAgain) {
  auto answer = stage_.drain("generator-0", seconds(8));
  auto again = stage_.drain("node/generator-0", seconds(8));
  stage_.run_for(seconds(5));
  EXPECT_FALSE(answer.done()) << "it still samples";
  EXPECT_EQ(stage_.place_of("generator/0").first, "node/generator-0");
  stage_.run_for(seconds(10));
  ASSERT_TRUE(answer.done() && again.done());
  EXPECT_TRUE(answer.value());
  EXPECT_TRUE(again.value());
  EXPECT_EQ(stage_.drained(), std::vector<std::string>{"generator/0"}) << "once";
  ASSERT_FALSE(stage_.lost().empty());
  EXPECT_EQ(stage_.lost().front(), "generator/0");
  EXPECT_TRUE(said("node/generator-0 has left"));
  stage_.run_for(seconds(60));
  EXPECT_FALSE(stage_.is_here("node/generator-0"));
  EXPECT_EQ(stage_.asked("generator/0 at node/generator-0"), 1u);
  EXPECT_EQ(stage_.company().placement().find("generator/0"), nullptr);
  auto late = stage_.drain("generator-0");
  stage_.run_for(seconds(1));
  ASSERT_TRUE(late.done());
  EXPECT_TRUE(late.value()) << "it has left already";
  EXPECT_EQ(stage_.hopeless(), "");
}

TEST_F(CompanyDrain, WhatAnotherNodeCanPlayMovesThere) {
  stage_.guest("node/b", {"reference"}, 12);
  stage_.run_for(seconds(2));
  const std::uint64_t before = stage_.place_of("reference/0").second;
  auto answer = stage_.drain("a");
  stage_.run_for(seconds(20));
  ASSERT_TRUE(answer.done());
  EXPECT_TRUE(answer.value());
  const auto [node, epoch] = stage_.place_of("reference/0");
  EXPECT_EQ(node, "node/b");
  EXPECT_EQ(epoch, before + 1);
  EXPECT_EQ(state_of("reference/0"), company::RoleState::kUp);
  EXPECT_EQ(stage_.company().placement().find("reference/0")->losses.size(), 0u);
  EXPECT_EQ(stage_.company().placement().find("generator/2"), nullptr);
  EXPECT_FALSE(stage_.is_here("node/a"));
  EXPECT_TRUE(said("reference/0 is taken down: node/a is drained"));
  EXPECT_FALSE(said("reference/0 is lost: node/a is drained"));
}

TEST_F(CompanyDrain, WhatTheRunNeedsIsRefusedWithTheReason) {
  EXPECT_TRUE(
      refusal("policy").starts_with("node/policy cannot be drained: it has policy/0, and "
                                    "with it what the run has learned; "));
  EXPECT_TRUE(
      refusal("reward").starts_with("node/reward cannot be drained: the run is configured "
                                    "to have reward/0 there; "));
  EXPECT_EQ(refusal("a"),
            "node/a cannot be drained: no other node can take reference/0; start one first, with "
            "`troupe node --roles reference`");
  EXPECT_EQ(refusal("gpu7"),
            "there is no node gpu7 in this run; its nodes are a, generator-0, generator-1, policy, "
            "reward");
  EXPECT_TRUE(refusal("head").starts_with("the head cannot be drained: "));
  auto first = stage_.drain("generator-0"), second = stage_.drain("generator-1");
  stage_.run_for(seconds(20));
  ASSERT_TRUE(first.done() && second.done());
  EXPECT_TRUE(first.value() && second.value());
  stage_.guest("node/b", {"reference"}, 12);
  stage_.run_for(seconds(5));
  EXPECT_EQ(refusal("a"),
            "node/a cannot be drained: no other node has a generator that is up; start one first, "
            "with `troupe node --roles generator`");
  EXPECT_EQ(stage_.place_of("generator/2").first, "node/a");
}

// An environment that a node brings is the node's own: it plays under the node's name, leaves when
// it is asked to, and goes with its node.
TEST(CompanyEnvironments, AreAttachedAndDetachedWithTheirNodes) {
  CompanyStage stage(21, drain_nodes(), drain_roles(), true);
  stage.guest("node/search", {kAttachedEnvironment}, 12);
  stage.guest("node/calc", {kAttachedEnvironment}, 13);
  stage.run_for(seconds(5));
  EXPECT_EQ(stage.place_of("environment/search").first, "node/search");
  EXPECT_EQ(stage.place_of("environment/calc").first, "node/calc");
  auto answer = stage.drain("search", seconds(8));
  stage.run_for(seconds(5));
  EXPECT_FALSE(answer.done()) << "it finishes its episodes";
  stage.run_for(seconds(10));
  ASSERT_TRUE(answer.done());
  EXPECT_TRUE(answer.value());
  EXPECT_EQ(stage.drained(), std::vector<std::string>{"environment/search"});
  EXPECT_FALSE(stage.is_here("node/search"));
  EXPECT_EQ(stage.company().placement().find("environment/search"), nullptr);
  EXPECT_EQ(stage.place_of("environment/calc").first, "node/calc");
  EXPECT_EQ(stage.hopeless(), "");
}

TEST(CompanyEnvironments, ARunWithoutEpisodesTakesNone) {
  CompanyStage stage(21, drain_nodes(), drain_roles());
  stage.guest("node/search", {kAttachedEnvironment}, 12);
  stage.guest("node/serve", {"serve", "learn"}, 13);
  stage.run_for(seconds(5));
  EXPECT_FALSE(stage.is_here("node/search"));
  EXPECT_FALSE(stage.is_here("node/serve"));
  EXPECT_EQ(stage.company().placement().find("environment/search"), nullptr);
}

TEST_F(CompanyDrain, ANodeThatFreezesMeanwhileIsLetGoAndToldAgainWhenItComesBack) {
  stage_.guest("node/b", {"generator"}, 12);
  stage_.run_for(seconds(5));
  ASSERT_EQ(stage_.place_of("generator/3").first, "node/b");
  stage_.freeze("node/b");
  auto answer = stage_.drain("b", std::chrono::hours(1), 5'000);
  stage_.run_for(seconds(30));
  ASSERT_TRUE(answer.done()) << "it waits for ever";
  EXPECT_TRUE(answer.value());
  EXPECT_EQ(stage_.company().placement().find("generator/3"), nullptr);
  stage_.thaw("node/b");
  stage_.run_for(seconds(5));
  stage_.guest("node/b", {"generator"}, 12);  // the same process
  stage_.run_for(seconds(5));
  EXPECT_FALSE(stage_.is_here("node/b"));
  EXPECT_EQ(stage_.asked("generator/4 at node/b"), 0u);
  stage_.guest("node/b", {"generator"}, 13);  // another one, started to stay
  stage_.run_for(seconds(5));
  EXPECT_TRUE(stage_.is_here("node/b"));
  EXPECT_EQ(stage_.place_of("generator/4").first, "node/b");
}

TEST_F(CompanyDrain, WhateverHappensMeanwhileTheAnswerComesAndTheNodeStaysAway) {
  for (std::uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CompanyStage stage(seed, drain_nodes(),
                       {drain_roles()[0], drain_roles()[1], drain_roles()[3], drain_roles()[4]});
    stage.run_for(seconds(5));
    const std::uint64_t fault = stage.rng().next_below(5);
    auto answer = stage.drain("generator-0", milliseconds(stage.rng().next_below(4000)), 3000);
    stage.run_for(milliseconds(stage.rng().next_below(5000)));
    if (fault == 0) stage.crash("node/generator-0");
    if (fault == 1) stage.crash_role("generator/0");
    if (fault == 2) stage.freeze("node/generator-0");
    if (fault == 3) stage.cut("node/generator-0");
    if (fault == 4) stage.report_sick("generator/0", 1);
    stage.run_for(seconds(60));
    stage.thaw("node/generator-0");
    stage.heal();
    stage.run_for(seconds(60));
    ASSERT_TRUE(answer.done());
    EXPECT_TRUE(answer.value());
    EXPECT_EQ(stage.company().placement().find("generator/0"), nullptr);
    EXPECT_FALSE(stage.is_here("node/generator-0"));
    EXPECT_EQ(stage.asked("generator/0 at node/generator-0"), 1u);
    EXPECT_EQ(stage.hopeless(), "");
  }
}

}  // namespace troupe::actors::testing
