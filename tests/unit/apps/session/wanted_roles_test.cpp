// Which roles a run wants, where they run, and which have to come from elsewhere.
#include "apps/session/wanted_roles.hpp"

#include "apps/session/roles/run_settings.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

using Lines = std::vector<std::string>;

// "policy/0 at node/policy", "generator/0 anywhere".
Lines lines_of(const config::TrainConfig& config) {
  Lines lines;
  for (const actors::company::WantedRole& role : wanted_roles(config)) {
    EXPECT_TRUE(role.name.starts_with(role.kind + "/"));
    lines.push_back(role.name + (role.bound.empty() ? " anywhere" : " at " + role.bound));
  }
  return lines;
}

config::TrainConfig with_rule() {
  config::TrainConfig config;
  config.reward.rule = "exact";
  return config;
}

TEST(WantedRoles, EachRoleOfThisHostHasANodeOfItsOwn) {
  config::TrainConfig config = with_rule();
  config.cluster.transport = config::Transport::kCaf;
  config.rollout.generators = 2;
  config.algo.advantage.estimator = "gae";
  config.reward.model_name_or_path = {"models/helpful"};
  EXPECT_EQ(lines_of(config),
            (Lines{"policy/0 at node/policy", "critic/0 at node/critic", "reward/0 at node/reward",
                   "reward/helpful at node/reward-helpful", "generator/0 at node/generator-0",
                   "generator/1 at node/generator-1"}));
  EXPECT_EQ(awaited_kinds(config), "");
  EXPECT_EQ(needed_kinds(config), (Lines{"policy", "reward", "critic"}));
}

// What comes with the episodes is a member of the reward set that no role gives.
TEST(WantedRoles, FeedbackIsARewardWithoutARole) {
  config::TrainConfig config;
  config.cluster.transport = config::Transport::kCaf;
  config.reward.feedback = true;
  EXPECT_EQ(lines_of(config),
            (Lines{"policy/0 at node/policy", "generator/0 at node/generator-0"}));
  EXPECT_EQ(needed_kinds(config), Lines{"policy"});
  config.reward.rule = "exact";
  config.reward.weights = {2, 3};
  EXPECT_EQ(lines_of(config), (Lines{"policy/0 at node/policy", "reward/0 at node/reward",
                                     "generator/0 at node/generator-0"}));
  const actors::data::DataRoleOptions options = data_options(config);
  ASSERT_EQ(options.rewards.size(), 2u);
  EXPECT_EQ(options.rewards[1], (actors::RewardMember{"feedback", actors::kFeedbackPeer, 3}));
}

TEST(WantedRoles, RanksHaveNodesOfTheirOwnAndMayBeElsewhere) {
  config::TrainConfig config = with_rule();
  config.cluster.transport = config::Transport::kCaf;
  config.actor.ranks = 3;
  EXPECT_EQ(lines_of(config), (Lines{"policy/0 at node/policy", "policy/1 at node/policy-1",
                                     "policy/2 at node/policy-2", "reward/0 at node/reward",
                                     "generator/0 at node/generator-0"}));
  for (const actors::company::WantedRole& role : wanted_roles(config))
    EXPECT_EQ(role.ranked, role.kind == "policy") << role.name;
  EXPECT_EQ(awaited_kinds(config), "");
  config.cluster.local_ranks = 2;
  EXPECT_EQ(lines_of(config)[1], "policy/1 at node/policy-1");
  EXPECT_EQ(lines_of(config)[2], "policy/2 anywhere");
  EXPECT_EQ(awaited_kinds(config), "policy");
  config.actor.ranks = 1;
  EXPECT_FALSE(wanted_roles(config).front().ranked) << "one rank is no gang";
}

TEST(WantedRoles, ASupervisedRunHasATrainerAlone) {
  config::TrainConfig config;
  config.method = config::kDpo;
  config.cluster.transport = config::Transport::kLoopback;
  EXPECT_EQ(lines_of(config), (Lines{"policy/0 at node/policy"}));
  config.cluster.transport = config::Transport::kCaf;
  config.cluster.local_roles = {"policy"};
  config.actor.ranks = 2;
  EXPECT_EQ(lines_of(config), (Lines{"policy/0 at node/policy", "policy/1 at node/policy-1"}));
  EXPECT_EQ(awaited_kinds(config), "") << "no generator, no reward, no reference";
}

TEST(WantedRoles, WhatDoesNotRunHereIsAwaited) {
  config::TrainConfig config = with_rule();
  config.cluster.transport = config::Transport::kCaf;
  config.cluster.local_roles = {"policy", "generator"};
  config.rollout.generators = 0;
  EXPECT_EQ(lines_of(config), (Lines{"policy/0 at node/policy", "reward/0 anywhere"}));
  EXPECT_EQ(awaited_kinds(config), "generator,reward");
}

TEST(WantedRoles, OneProcessHasThemAllAndAGeneratorAtLeast) {
  config::TrainConfig config = with_rule();
  config.cluster.transport = config::Transport::kLoopback;
  config.cluster.local_roles = {"policy"};
  config.rollout.generators = 0;
  EXPECT_EQ(lines_of(config), (Lines{"policy/0 at node/policy", "reward/0 at node/reward",
                                     "generator/0 at node/generator-0"}));
}

}  // namespace
}  // namespace troupe::session
