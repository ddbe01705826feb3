// Engine limits from the keys of a run.
#include "apps/session/roles/run_settings.hpp"

#include <gtest/gtest.h>

namespace troupe::app {
namespace {

TEST(EngineSettings, TheDefaultsAreTheEngines) {
  const engine::EngineLimits limits = engine_limits(config::TrainConfig());
  const engine::EngineLimits own;
  EXPECT_EQ(limits.sequences_max, own.sequences_max);
  EXPECT_EQ(limits.step_tokens_max, own.step_tokens_max);
  EXPECT_EQ(limits.kv_bytes_max, own.kv_bytes_max);
  EXPECT_EQ(limits.prefix_cache, own.prefix_cache);
}

TEST(EngineSettings, EachKeyHasItsLimit) {
  config::TrainConfig config;
  config.rollout.max_num_seqs = 7;
  config.rollout.max_num_batched_tokens = 33;
  config.rollout.kv_cache_gb = 0.25;
  config.rollout.enable_prefix_caching = false;
  const engine::EngineLimits limits = engine_limits(config);
  EXPECT_EQ(limits.sequences_max, 7);
  EXPECT_EQ(limits.step_tokens_max, 33);
  EXPECT_EQ(limits.kv_bytes_max, 268435456u);
  EXPECT_FALSE(limits.prefix_cache);
}

}  // namespace
}  // namespace troupe::app
