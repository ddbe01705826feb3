// Every choice of the configuration table reaches the trainer.
#include "apps/session/roles/learn_settings.hpp"

#include <gtest/gtest.h>

namespace troupe::app {

TEST(TrainerSettings, EveryChoiceOfTheTableHasAMeaning) {
  using learn::AdvantageKind;
  using learn::CorrectionKind;
  using learn::ObjectiveKind;
  config::TrainConfig config;
  for (const auto& [name, kind] : {std::pair{"group_norm", AdvantageKind::kGrpo},
                                   {"dr_grpo", AdvantageKind::kDrGrpo},
                                   {"rloo", AdvantageKind::kRloo},
                                   {"reinforce_baseline", AdvantageKind::kReinforceBaseline},
                                   {"reinforce", AdvantageKind::kReinforce},
                                   {"gae", AdvantageKind::kGae},
                                   {"vtrace", AdvantageKind::kVtrace}}) {
    config.algo.advantage.estimator = name;
    EXPECT_EQ(trainer_settings(config, 1).algo.advantage, kind) << name;
  }
  for (const auto& [name, kind] : {std::pair{"ppo", ObjectiveKind::kPpo},
                                   {"decoupled", ObjectiveKind::kDecoupled},
                                   {"a3po", ObjectiveKind::kA3po},
                                   {"bypass", ObjectiveKind::kBypass},
                                   {"gspo", ObjectiveKind::kGspo},
                                   {"cispo", ObjectiveKind::kCispo},
                                   {"reinforce", ObjectiveKind::kReinforce},
                                   {"topr", ObjectiveKind::kTopr},
                                   {"online_dpo", ObjectiveKind::kOnlineDpo}}) {
    config.algo.objective = name;
    EXPECT_EQ(trainer_settings(config, 1).algo.objective, kind) << name;
  }
  for (const auto& [name, kind] : {std::pair{"none", CorrectionKind::kNone},
                                   {"tis", CorrectionKind::kTis},
                                   {"seq_tis", CorrectionKind::kSeqTis},
                                   {"mis", CorrectionKind::kMis},
                                   {"icepop", CorrectionKind::kIcepop},
                                   {"geo_rs", CorrectionKind::kGeoRs},
                                   {"m2po", CorrectionKind::kM2po},
                                   {"opsm", CorrectionKind::kOpsm}}) {
    config.algo.correction.type = name;
    EXPECT_EQ(trainer_settings(config, 1).algo.correction, kind) << name;
  }
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
