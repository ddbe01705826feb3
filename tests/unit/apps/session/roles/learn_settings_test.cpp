// Every choice of the configuration reaches the trainer.
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/method.hpp"
#include "runtime/learn/supervised/methods.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::app {

TEST(LearnTables, EveryWordOfTheConfigurationReachesItsRow) {
  config::TrainConfig config;
  for (const learn::Objective& row : learn::Objective::all()) {
    config.algo.objective = row.name;
    EXPECT_EQ(trainer_settings(config, 1).algo.objective->name, row.name);
    EXPECT_EQ(has_reference(config), row.pairs) << row.name;
  }
  for (const learn::Estimator& row : learn::Estimator::all()) {
    config.algo.advantage.estimator = row.name;
    EXPECT_EQ(trainer_settings(config, 1).algo.estimator->name, row.name);
    EXPECT_EQ(has_critic(config), row.has_critic) << row.name;
  }
  for (const learn::Correction& row : learn::Correction::all()) {
    config.algo.correction.type = row.name;
    EXPECT_EQ(trainer_settings(config, 1).algo.correction->name, row.name);
  }
}

TEST(LearnTables, MethodsAreThoseOfTheConfiguration) {
  std::string names;
  for (const learn::Method& method : learn::Method::all())
    names += (names.empty() ? "" : ", ") + std::string(method.name);
  EXPECT_EQ(names, config::method_names(config::kSupervised));
}

TEST(LearnTables, TheirRuleReadsTheConfiguration) {
  const auto rules = run_table().rules();
  ASSERT_EQ(rules.size(), 2u);
  config::TrainConfig config;
  EXPECT_FALSE(rules[0](config).has_value());
  config.rollout.n_samples_per_prompt = 1;
  const auto refused = rules[0](config);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->key, "rollout.n_samples_per_prompt");
  config.method = config::kDpo;
  EXPECT_FALSE(rules[0](config).has_value());
  config.dpo.loss = "robust";
  EXPECT_EQ(rules[0](config)->key, "dpo.label_smoothing");
  config.method = config::kIpo;
  EXPECT_FALSE(rules[0](config).has_value()) << "dpo.loss is read by dpo alone";
}

TEST(TrainerSettings, LanesReachEveryTrainer) {
  config::TrainConfig config;
  config.train.lanes = 4;
  EXPECT_EQ(trainer_settings(config, 1).optim.lanes, 4);
  EXPECT_EQ(optim_of(config.critic, config).lanes, 4);
  config.method = config::kSft;
  EXPECT_EQ(supervised_settings(config, 1).optim.lanes, 4);
}

TEST(TrainerSettings, ACriticCheckpointsAsThePolicyDoes) {
  config::TrainConfig config;
  EXPECT_FALSE(critic_settings(config, 1, {}).optim.checkpointing);
  config.actor.gradient_checkpointing_enable = true;
  config.actor.param_dtype = config::ParamDtype::kBf16;
  EXPECT_TRUE(critic_settings(config, 1, {}).optim.checkpointing);
  EXPECT_EQ(critic_settings(config, 1, {}).optim.panels, kernels::PanelDtype::kF32);
}

TEST(TrainerSettings, MoreLanesThanSamplesAreNoted) {
  config::TrainConfig config;
  config.rollout.batch_size = 4;
  config.rollout.n_samples_per_prompt = 2;
  config.train.lanes = 8;
  EXPECT_FALSE(lanes_note(config));
  config.train.batch_size = 4;
  EXPECT_EQ(*lanes_note(config),
            "train.lanes is 8, but an optimiser step has only 4 samples: the other lanes stay "
            "empty");
  config.method = config::kDpo;
  config.train.batch_size = 7;
  EXPECT_NE(lanes_note(config)->find("only 7 samples"), std::string::npos);
}

TEST(TrainerSettings, DefaultsThatDependOnOtherKeys) {
  config::TrainConfig config;
  config.rollout.max_new_tokens = 77;
  config.train.max_epochs = 3;
  auto settings = trainer_settings(config, 5);
  EXPECT_EQ(settings.algo.reducer_constant, 77.0);
  EXPECT_EQ(settings.algo.shaping.response_tokens_max, 77);
  EXPECT_EQ(settings.total_steps, 15);
  EXPECT_LT(settings.ema_beta, 0);
  EXPECT_EQ(settings.dump_folder, config.run.path);
  EXPECT_EQ(settings.freezing_steps, 0u);
  config.algo.reducer_constant = 12;
  config.train.enable_ema = true;
  config.critic.freezing_steps = 4;
  settings = trainer_settings(config, 5);
  EXPECT_EQ(settings.algo.reducer_constant, 12.0);
  EXPECT_EQ(settings.ema_beta, 0.992);
  EXPECT_EQ(settings.freezing_steps, 0u) << "nobody learns while the policy waits without a critic";
  config.algo.advantage.estimator = "gae";
  EXPECT_EQ(trainer_settings(config, 5).freezing_steps, 4u);
}

}  // namespace troupe::app
