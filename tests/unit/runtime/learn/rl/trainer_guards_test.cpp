// What keeps an update from being taken, or a run from going on: frozen updates, a KL that grows
// too large, the alarm, and the record of a batch that stops a run.
#include "tests/unit/runtime/learn/rl/rl_fixture.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

namespace troupe::learn {

TEST_F(PolicyTrainerRl, FrozenUpdatesOnlyPass) {
  auto settings = settings_of();
  settings.freezing_steps = 2;
  settings.batch.mini_batches = 2;
  auto trainer = make(settings), untouched = make(settings);
  for (std::uint64_t update = 0; update < 2; ++update) {
    const auto metrics = run(*trainer, groups_of(*trainer, update));
    EXPECT_EQ(metrics.at("policy/frozen"), 1.0);
    EXPECT_EQ(metrics.count("policy/loss"), 0u);
  }
  EXPECT_EQ(trainer->version(), 4u);
  EXPECT_EQ(difference(*trainer, *untouched), 0.0);
  ASSERT_TRUE(trainer->save_state(folder_).has_value());
  auto resumed = make(settings, 3);
  ASSERT_TRUE(resumed->load_state(folder_).has_value());
  const auto groups = groups_of(*trainer, 2);
  const auto a = run(*trainer, groups), b = run(*resumed, groups);
  EXPECT_EQ(a.count("policy/frozen"), 0u);
  EXPECT_EQ(a, b);
  EXPECT_GT(difference(*trainer, *untouched), 0.0);
}

TEST_F(PolicyTrainerRl, LeavesOutTheStepsAfterTheKlIsTooLarge) {
  auto settings = settings_of();
  settings.batch.mini_batches = 4;
  settings.batch.max_epochs = 2;
  settings.algo.kl.stop = 1e-12;
  auto stopping = make(settings);
  const auto metrics = run(*stopping, groups_of(*stopping, 0));
  // The first step is taken at distance 0, the second finds it above the bound and is the last.
  EXPECT_EQ(metrics.at("policy/left_out_steps"), 6.0);
  EXPECT_EQ(stopping->version(), 8u);
  settings.algo.kl.stop = 1e6;
  auto going = make(settings);
  EXPECT_EQ(run(*going, groups_of(*going, 0)).at("policy/left_out_steps"), 0.0);
}

TEST_F(PolicyTrainerRl, RaisesAnAlarmWhenTheRewardRisesFarFromTheSampler) {
  auto trainer = make(settings_of());
  auto groups = groups_of(*trainer, 0);
  EXPECT_EQ(run(*trainer, groups).at("alarm/reward_up_kl_high"), 0.0);
  const auto far = [&](double bonus, float shift) {
    auto next = groups_of(*trainer, 1);
    for (auto& group : next) {
      for (auto& sample : group.samples) {
        *sample.score += bonus;
        for (float& l : sample.behaviour)
          l += shift;
        sample.versions =
            experience::VersionRuns::all(sample.versions.front() - 1, sample.tokens.size());
      }
    }
    return run(*trainer, next).at("alarm/reward_up_kl_high");
  };
  EXPECT_EQ(far(5, 0.0f), 0.0);
  EXPECT_EQ(far(9, -1.0f), 1.0);
  EXPECT_EQ(far(-9, -1.0f), 0.0);
}

TEST_F(PolicyTrainerRl, WritesTheBatchThatStopsTheRun) {
  auto settings = settings_of();
  settings.algo.advantage.estimator = "dr_grpo";
  settings.algo.reward_clip_low = -1e301;
  settings.algo.reward_clip_high = 1e301;
  settings.optim.nonfinite_steps_max = 0;
  settings.dump_folder = folder_;
  auto trainer = make(settings);
  auto groups = groups_of(*trainer, 7);
  groups[0].samples[0].score = 1e300;
  const auto result = trainer->update(groups);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, core::ErrorCode::kNumeric);
  const auto path = folder_ / "nonfinite_step_0.jsonl";
  EXPECT_NE(result.error().message.find(path.string()), std::string::npos)
      << result.error().message;
  std::ifstream in(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    const auto row = nlohmann::json::parse(line);
    const auto& group = groups[row.at("slot").get<std::size_t>()];
    const auto& sample = group.samples[row.at("sample").get<std::size_t>()];
    EXPECT_EQ(row.at("update"), 7);
    EXPECT_EQ(row.at("tokens"), sample.tokens);
    EXPECT_EQ(row.at("logprobs").size(), sample.tokens.size());
    EXPECT_EQ(row.at("advantages").size(), sample.tokens.size());
    EXPECT_EQ(row.at("behaviour")[0].get<float>(), sample.behaviour[0]);
  }
  EXPECT_EQ(lines, 16u);
}

}  // namespace troupe::learn
