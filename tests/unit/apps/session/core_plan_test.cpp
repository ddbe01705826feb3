// Which role gets how many cores, with and without GPUs.
#include "apps/session/core_plan.hpp"

#include "apps/session/roles/role_devices.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

config::TrainConfig asynchronous() {
  config::TrainConfig config;
  config.train.staleness_max = 1;
  config.algo.advantage.estimator = "gae";  // with a critic
  return config;
}

TEST(CorePlan, ASynchronousRunLeasesAllCoresInTurn) {
  config::TrainConfig config;
  const CorePlan plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("policy"), 8u);
  EXPECT_EQ(plan.threads.at("generator"), 8u);
  EXPECT_EQ(plan.text, "8 cores: all to each role in turn (synchronous)");
}

TEST(CorePlan, TheTrainerOfASupervisedRunHasAllCores) {
  config::TrainConfig config;
  config.method = config::kSft;
  EXPECT_EQ(plan_cores(config, 8).text, "8 cores: all to the policy");
  config.actor.ranks = 2;
  const CorePlan plan = plan_cores(config, 8);
  EXPECT_EQ(plan.text, "8 cores: all to the policy; 2 ranks of the policy with 4 threads each");
  EXPECT_EQ(plan.threads, (std::map<std::string, std::uint32_t>{{"policy", 4}}));
}

TEST(CorePlan, ARoleOnAGpuNeedsOneCore) {
  config::TrainConfig config;
  config.rollout.device = {{true, 1}};
  const CorePlan plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("policy"), 8u);
  EXPECT_EQ(plan.threads.at("generator"), 1u);
  EXPECT_EQ(plan.text, "8 cores: all to each role in turn (synchronous); generator on cuda:1");
}

TEST(CorePlan, AsynchronousRolesShareWhatGpusLeave) {
  config::TrainConfig config = asynchronous();
  EXPECT_EQ(plan_cores(config, 8).threads, (std::map<std::string, std::uint32_t>{{"policy", 2},
                                                                                 {"environment", 1},
                                                                                 {"critic", 2},
                                                                                 {"generator", 4},
                                                                                 {"reference", 2},
                                                                                 {"teacher", 2},
                                                                                 {"reward", 2}}));
  config.rollout.device = {{true, 0}};  // 7 cores are left, all for learning
  CorePlan plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("generator"), 1u);
  EXPECT_EQ(plan.threads.at("policy"), 4u);
  EXPECT_EQ(plan.threads.at("critic"), 3u);
  config.actor.device = {{true, 0}};  // 6 are left for the critic
  plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("policy"), 1u);
  EXPECT_EQ(plan.threads.at("critic"), 6u);
  config.critic.device = {{true, 1}};
  config.rollout.device = {{}};  // 6 are left for the generator
  plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("critic"), 1u);
  EXPECT_EQ(plan.threads.at("generator"), 6u);
  EXPECT_NE(plan.text.find("; policy on cuda:0, critic on cuda:1"), std::string::npos);
}

TEST(CorePlan, EnginesTakeTheirDevicesInTurn) {
  config::TrainConfig config = asynchronous();
  config.rollout.generators = 3;
  config.rollout.device = {{true, 1}, {}};  // generator/1 is on the CPU
  EXPECT_EQ(device_of(config, "generator", "generator/0").text(), "rollout.device cuda:1");
  EXPECT_EQ(device_of(config, "generator", "generator/1").text(), "rollout.device cpu");
  EXPECT_EQ(device_of(config, "generator", "generator/12").text(), "rollout.device cuda:1");
  EXPECT_EQ(device_of(config, "generator").text(), "rollout.device cuda:1");
  EXPECT_EQ(generators_on_gpus(config, 3), 2u);
  EXPECT_EQ(devices_text(config), "generators in turn on cuda:1 and cpu");
  CorePlan plan = plan_cores(config, 8);  // 6 are left, 3 of them for learning
  EXPECT_EQ(plan.threads.at("policy"), 2u);
  EXPECT_EQ(plan.threads.at("critic"), 1u);
  EXPECT_EQ(plan.threads.at("generator"), 3u);  // for the one on the CPU
  config.actor.device = {{true, 0}};
  config.rollout.device = {{true, 1}, {true, 2}};
  plan = plan_cores(config, 8);  // 4 are left for the critic
  EXPECT_EQ(plan.threads.at("generator"), 1u);
  EXPECT_EQ(plan.threads.at("critic"), 4u);
  EXPECT_NE(plan.text.find("; policy on cuda:0, generators in turn on cuda:1 and cuda:2"),
            std::string::npos)
      << plan.text;
  config.train.staleness_max = 0;
  EXPECT_EQ(plan_cores(config, 8).threads.at("generator"), 1u);
  config.rollout.device = {{true, 1}, {}};
  EXPECT_EQ(plan_cores(config, 8).threads.at("generator"), 8u);
}

TEST(CorePlan, RanksShareTheCoresOfTheirRole) {
  config::TrainConfig config;
  config.actor.ranks = 4;
  CorePlan plan = plan_cores(config, 10);
  EXPECT_EQ(plan.threads.at("policy"), 2u);
  EXPECT_EQ(plan.threads.at("generator"), 10u);
  EXPECT_EQ(
      plan.text,
      "10 cores: all to each role in turn (synchronous); 4 ranks of the policy with 2 threads "
      "each");
  config.cluster.local_ranks = 1;  // the others have cores of their own
  EXPECT_EQ(plan_cores(config, 10).threads.at("policy"), 10u);
  config.cluster.local_ranks = 0;
  config.actor.device = {{true, 0}, {true, 1}, {true, 2}, {true, 3}};
  plan = plan_cores(config, 10);
  EXPECT_EQ(plan.threads.at("policy"), 1u);
  EXPECT_NE(plan.text.find("ranks of the policy on cuda:0 and cuda:1 and cuda:2 and cuda:3"),
            std::string::npos)
      << plan.text;
  EXPECT_EQ(device_of(config, "policy", "policy/2").text(), "actor.device cuda:2");
  config = asynchronous();
  config.critic.ranks = 2;
  EXPECT_EQ(plan_cores(config, 8).threads.at("critic"), 1u);
}

}  // namespace
}  // namespace troupe::session
