// Engine limits from the keys of a run.
#include "apps/session/roles/run_settings.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

TEST(EngineSettings, EachKeyHasItsLimit) {
  config::TrainConfig config;
  config.rollout.max_num_seqs = 7;
  config.rollout.max_num_batched_tokens = 33;
  config.rollout.kv_cache_gb = 0.25;
  config.rollout.enable_prefix_caching = false;
  const engine::EngineLimits limits = engine_limits(config);
  EXPECT_EQ(limits.max_num_seqs, 7);
  EXPECT_EQ(limits.max_num_batched_tokens, 33);
  EXPECT_EQ(limits.kv_cache_gb.bytes, 268435456u);
  EXPECT_FALSE(limits.enable_prefix_caching);
}

TEST(LeftOverNote, CountsWhatFillsNoUpdate) {
  config::TrainConfig config;
  config.method = config::kKto;
  config.train.batch_size = 2;
  config.train.max_epochs = 1;
  EXPECT_EQ(left_over_note(config, 5),
            "1 row is left over at the end of the last epoch: 5 do not divide by "
            "train.batch_size 2");
  EXPECT_EQ(left_over_note(config, 6), std::nullopt);
  config.train.max_epochs = 2;
  EXPECT_EQ(left_over_note(config, 5), std::nullopt) << "two epochs are ten rows";
  config.train.max_epochs = 1;
  config.train.max_steps = 2;
  EXPECT_EQ(left_over_note(config, 5), std::nullopt) << "so many were asked for";
  config = config::TrainConfig();
  config.method = config::kPpo;
  config.train.num_episodes = 1;
  config.rollout.batch_size = 8;
  EXPECT_EQ(left_over_note(config, 20),
            "4 prompts are left over at the end of the last epoch: 20 do not divide by "
            "rollout.batch_size 8");
}

}  // namespace
}  // namespace troupe::session
