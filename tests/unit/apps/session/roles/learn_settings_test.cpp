// Every choice of the configuration reaches the trainer.
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/method.hpp"
#include "runtime/learn/supervised/methods.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::session {

TEST(LearnTables, EveryWordOfTheConfigurationReachesItsRow) {
  config::TrainConfig config;
  for (const learn::Objective& row : learn::Objective::all()) {
    config.algo.objective = row.name;
    EXPECT_EQ(trainer_settings(config, 1).algo.objective->name, row.name);
    EXPECT_EQ(has_reference(config), row.pairs) << row.name;
  }
  for (const learn::Estimator& row : learn::Estimator::all()) {
    config.algo.advantage.estimator = row.name;
    EXPECT_EQ(trainer_settings(config, 1).algo.advantage.estimator->name, row.name);
    EXPECT_EQ(has_critic(config), row.has_critic) << row.name;
  }
  for (const learn::Correction& row : learn::Correction::all()) {
    config.algo.correction.type = row.name;
    EXPECT_EQ(trainer_settings(config, 1).algo.correction.type->name, row.name);
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

// Each key that a method's row names is a number (or the name of a loss) that the method reads, and
// its value reaches the loss.
TEST(LearnTables, TheKeysOfAMethodReachItsLoss) {
  for (const learn::Method& method : learn::Method::all()) {
    SCOPED_TRACE(method.name);
    config::TrainConfig config;
    config.method = config::method_named(method.name);
    const auto give = [&](std::string_view key, const std::string& value) {
      const config::Row* row = config::keys().find(key);
      ASSERT_NE(row, nullptr) << key;
      EXPECT_TRUE(row->is_read_by(config.method)) << key;
      ASSERT_TRUE(row->set(config, {std::string(key), {value}, false, "a test"}));
    };
    for (const config::Row& row : config::keys().rows()) {
      const bool other = row.name.ends_with(".beta") && row.name != method.beta;
      EXPECT_FALSE(!method.beta.empty() && other && row.is_read_by(config.method)) << row.name;
    }
    if (!method.beta.empty()) give(method.beta, "0.625");
    if (!method.nll_key.empty()) give(method.nll_key, "0.375");
    if (!method.pair_loss_key.empty()) give(method.pair_loss_key, "hinge");
    const learn::LossSettings loss = supervised_settings(config, 1).loss;
    EXPECT_EQ(loss.method->name, method.name);
    EXPECT_EQ(loss.beta, method.beta.empty() ? learn::LossSettings().beta : 0.625);
    EXPECT_EQ(loss.nll_coef, method.nll_key.empty() ? 0 : 0.375);
    EXPECT_EQ(loss.pair_loss.has_value(), !method.pair_loss_key.empty());
  }
}

TEST(TrainerSettings, ARunMayGrowWhereNoLearningRateKnowsItsLength) {
  config::TrainConfig config;
  const auto flatten = [](auto& section) {
    section.lr_warmup_ratio = 0;
    section.min_lr_ratio = 1;
  };
  EXPECT_FALSE(may_grow(config));
  flatten(config.actor);
  for (const learn::Estimator& estimator : learn::Estimator::all()) {
    config.algo.advantage.estimator = estimator.name;
    EXPECT_EQ(may_grow(config), !estimator.has_critic) << estimator.name;
  }
  config.algo.advantage.estimator = "vtrace";
  flatten(config.critic);
  EXPECT_TRUE(may_grow(config));
  config.method = config::kSft;
  config.critic.lr_warmup_ratio = 0.5;
  EXPECT_TRUE(may_grow(config)) << "it has no critic";
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
  EXPECT_FALSE(critic_settings(config, 1, {}).optim.gradient_checkpointing_enable);
  config.actor.gradient_checkpointing_enable = true;
  config.actor.param_dtype = config::ParamDtype::kBf16;
  EXPECT_TRUE(critic_settings(config, 1, {}).optim.gradient_checkpointing_enable);
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
  EXPECT_EQ(settings.algo.reducer_tokens(), 77.0);
  EXPECT_EQ(settings.algo.shaping.response_tokens_max, 77);
  EXPECT_EQ(settings.total_steps, 15);
  EXPECT_LT(settings.ema_beta, 0);
  EXPECT_EQ(settings.dump_folder, config.run.path);
  EXPECT_EQ(settings.freezing_steps, 0u);
  config.algo.reducer_constant = 12;
  config.train.enable_ema = true;
  config.critic.freezing_steps = 4;
  settings = trainer_settings(config, 5);
  EXPECT_EQ(settings.algo.reducer_tokens(), 12.0);
  EXPECT_EQ(settings.ema_beta, 0.992);
  EXPECT_EQ(settings.freezing_steps, 0u) << "nobody learns while the policy waits without a critic";
  config.algo.advantage.estimator = "gae";
  EXPECT_EQ(trainer_settings(config, 5).freezing_steps, 4u);
}

}  // namespace troupe::session
