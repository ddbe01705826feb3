// Which role gets how many cores, with and without GPUs.
#include "apps/session/core_plan.hpp"

#include <gtest/gtest.h>

namespace troupe::app {
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

TEST(CorePlan, ARoleOnAGpuNeedsOneCore) {
  config::TrainConfig config;
  config.rollout.device = {true, 1};
  const CorePlan plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("policy"), 8u);
  EXPECT_EQ(plan.threads.at("generator"), 1u);
  EXPECT_EQ(plan.text, "8 cores: all to each role in turn (synchronous); generator on cuda:1");
}

TEST(CorePlan, AsynchronousRolesShareWhatGpusLeave) {
  config::TrainConfig config = asynchronous();
  EXPECT_EQ(plan_cores(config, 8).threads,
            (std::map<std::string, std::uint32_t>{
                {"policy", 2}, {"critic", 2}, {"generator", 4}, {"reference", 2}, {"reward", 2}}));
  config.rollout.device = {true, 0};  // 7 cores are left, all for learning
  CorePlan plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("generator"), 1u);
  EXPECT_EQ(plan.threads.at("policy"), 4u);
  EXPECT_EQ(plan.threads.at("critic"), 3u);
  config.actor.device = {true, 0};  // 6 are left for the critic
  plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("policy"), 1u);
  EXPECT_EQ(plan.threads.at("critic"), 6u);
  config.critic.device = {true, 1};
  config.rollout.device = {};  // 6 are left for the generator
  plan = plan_cores(config, 8);
  EXPECT_EQ(plan.threads.at("critic"), 1u);
  EXPECT_EQ(plan.threads.at("generator"), 6u);
  EXPECT_NE(plan.text.find("; policy on cuda:0, critic on cuda:1"), std::string::npos);
}

}  // namespace
}  // namespace troupe::app
