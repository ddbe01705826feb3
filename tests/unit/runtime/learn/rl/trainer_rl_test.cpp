// What reinforcement learning adds to the trainer: critics, objectives, anchors, KL control,
// averages. Guards are in trainer_guards_test.cpp, texts in trainer_ptx_test.cpp.
#include "tests/unit/runtime/learn/rl/rl_fixture.hpp"

#include <cstring>

namespace troupe::learn {

TEST_F(PolicyTrainerRl, GaeTakesOneSampleAPromptAndReturnsTargets) {
  auto settings = settings_of("ppo");
  settings.algo.advantage.estimator = "gae";
  auto trainer = make(settings);
  const auto groups = groups_of(*trainer, 0, 1);
  auto targets = trainer->prepare(groups);
  ASSERT_TRUE(targets.has_value());
  ASSERT_EQ(targets->returns.size(), groups.size());
  // gamma = lambda = 1: every target is the score.
  for (std::size_t g = 0; g < groups.size(); ++g) {
    ASSERT_EQ(targets->returns[g][0].size(), groups[g].samples[0].tokens.size());
    for (const float target : targets->returns[g][0])
      EXPECT_NEAR(target, *groups[g].samples[0].score, 1e-5);
  }
  ASSERT_TRUE(trainer->learn().has_value());
  auto without = groups;
  without[2].samples[0].values.pop_back();
  const auto refused = trainer->prepare(without);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("prompt 3"), std::string::npos);
}

TEST_F(PolicyTrainerRl, EstimatorsWithoutACriticReturnNoTargets) {
  auto trainer = make(settings_of());
  auto targets = trainer->prepare(groups_of(*trainer, 0));
  ASSERT_TRUE(targets.has_value());
  EXPECT_TRUE(targets->returns.empty());
}

TEST_F(PolicyTrainerRl, VtraceOnPolicyIsGaeToTheBit) {
  auto settings = settings_of("ppo");
  settings.algo.advantage.lambd = 0.9;
  settings.batch.mini_batches = 2;
  settings.algo.advantage.estimator = "gae";
  auto gae = make(settings);
  settings.algo.advantage.estimator = "vtrace";
  auto vtrace = make(settings);
  const auto groups = groups_of(*gae, 0);
  auto a = gae->prepare(groups), b = vtrace->prepare(groups);
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_EQ(a->returns, b->returns);
  ASSERT_TRUE(gae->learn().has_value() && vtrace->learn().has_value());
  EXPECT_EQ(difference(*gae, *vtrace), 0.0);
  // Off policy the targets are weighted by the policy at the start over the behaviour.
  const auto old = stale(groups_of(*gae, 1));
  a = gae->prepare(old);
  b = vtrace->prepare(old);
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_NE(a->returns, b->returns);
}

TEST_F(PolicyTrainerRl, EveryObjectiveAddsUpOverMicroBatches) {
  std::vector<std::pair<Chosen<Objective>, Chosen<Correction>>> cases;
  for (const Objective& objective : Objective::all())
    cases.emplace_back(objective, "none");
  for (const Correction& correction : Correction::all())
    cases.emplace_back("ppo", correction);
  cases.emplace_back("decoupled", "geo_rs");
  for (const auto& [objective, correction] : cases) {
    auto settings = settings_of(objective);
    settings.algo.correction.type = correction;
    settings.algo.correction.low = 0.97;
    settings.algo.correction.high = correction == "m2po" ? 0.05 : 1.03;
    if (correction == "opsm") settings.algo.correction.high = 0.01;
    if (!objective->reducer.empty()) settings.algo.reducer = objective->reducer;
    settings.optim.adam.eps = 1.0;  // the step follows the gradient, not its sign
    settings.optim.lr_warmup_ratio = 0;
    settings.optim.adam.lr = 1.0;
    auto start = make(settings), big = make(settings);
    settings.batch.micro_tokens_max = 64;
    auto small = make(settings);
    std::map<std::string, double> whole, parts;
    for (auto* trainer : {big.get(), small.get(), start.get()})
      run(*trainer, std::vector<experience::Group>(groups_of(*start, 0)));
    const auto old = stale(groups_of(*start, 1));
    whole = run(*big, old);
    parts = run(*small, old);
    const auto name = std::string(objective->name) + " with " + std::string(correction->name);
    EXPECT_NEAR(whole.at("policy/loss"), parts.at("policy/loss"),
                1e-5 * std::fabs(whole.at("policy/loss")) + 1e-9)
        << name;
    EXPECT_EQ(whole.at("async/masked_share"), parts.at("async/masked_share")) << name;
    EXPECT_GT(difference(*big, *start), 1e-6) << name;
    EXPECT_LT(difference(*big, *small), 2e-5 * difference(*big, *start) + 1e-9) << name;
    if (correction != "none") {
      EXPECT_GT(whole.at("async/masked_share"), 0.0) << name;
      EXPECT_LT(whole.at("async/masked_share"), 1.0) << name;
    }
  }
}

TEST_F(PolicyTrainerRl, OnlineDpoMakesTheBestLikelierThanTheWorst) {
  auto trainer = make(settings_of("online_dpo"));
  auto groups = groups_of(*trainer, 0);
  for (auto& sample : groups[1].samples)
    sample.score = 1;  // nothing to compare
  const auto metrics = run(*trainer, groups);
  EXPECT_NEAR(metrics.at("policy/zero_advantage_share"), 0.25, 1e-15);
  double gain = 0;
  for (const auto& group : groups) {
    if (group.ticket.slot == 1) continue;
    const auto by_score = [](const experience::Trajectory& a, const experience::Trajectory& b) {
      return a.score < b.score;
    };
    const auto& s = group.samples;
    const auto best = std::max_element(s.begin(), s.end(), by_score) - s.begin();
    const auto worst = std::min_element(s.begin(), s.end(), by_score) - s.begin();
    const auto now = exact_logprobs(*trainer->packed(), group);
    for (const auto& [index, sign] : {std::pair{best, 1.0}, {worst, -1.0}}) {
      const auto i = static_cast<std::size_t>(index);
      for (std::size_t t = 0; t < now[i].size(); ++t)
        gain += sign * static_cast<double>(now[i][t] - s[i].behaviour[t]);
    }
  }
  EXPECT_GT(gain, 0);
}

TEST_F(PolicyTrainerRl, AveragesTheWeightsAndSavesThem) {
  auto settings = settings_of();
  settings.ema_beta = 0.75;
  auto trainer = make(settings);
  const std::vector<float> start(trainer->master().data(),
                                 trainer->master().data() + trainer->master().size());
  run(*trainer, groups_of(*trainer, 0));
  ASSERT_NE(trainer->average(), nullptr);
  for (std::size_t i = 0; i < start.size(); i += 97) {
    const float wanted = 0.75f * start[i] + 0.25f * trainer->master().data()[i];
    EXPECT_EQ(trainer->average()->data()[i], wanted);
  }
  ASSERT_TRUE(trainer->save_state(folder_).has_value());
  auto other = make(settings, 5);
  ASSERT_TRUE(other->load_state(folder_).has_value());
  EXPECT_EQ(std::memcmp(other->average()->data(), trainer->average()->data(),
                        start.size() * sizeof(float)),
            0);
  auto without = settings_of();
  EXPECT_EQ(make(without)->average(), nullptr);
}

TEST_F(PolicyTrainerRl, RunningStateComesBackWithItsBits) {
  auto settings = settings_of();
  settings.algo.shaping.normalise_running = true;
  settings.algo.kl.init_coef = 0.05;
  settings.algo.kl.target = 0.01;
  settings.algo.kl.horizon = 100;
  auto straight = make(settings), first = make(settings);
  for (std::uint64_t update = 0; update < 2; ++update) {
    const auto groups = groups_of(*straight, update);
    EXPECT_EQ(run(*straight, groups), run(*first, groups));
  }
  ASSERT_TRUE(first->save_state(folder_).has_value());
  auto second = make(settings, 77);
  ASSERT_TRUE(second->load_state(folder_).has_value());
  for (std::uint64_t update = 2; update < 4; ++update) {
    const auto groups = groups_of(*straight, update);
    const auto a = run(*straight, groups);
    EXPECT_EQ(a, run(*second, groups));
    EXPECT_NE(a.at("kl/coef"), 0.05);
  }
  EXPECT_EQ(difference(*straight, *second), 0.0);
}

TEST_F(PolicyTrainerRl, KlInTheRewardTakesAnExtraForwardForOldTokens) {
  auto settings = settings_of("ppo");
  settings.algo.kl.init_coef = 0.1;
  settings.algo.kl.use_loss = false;
  settings.algo.kl.estimator = "k1";
  settings.algo.advantage.estimator = "reinforce";
  auto fresh = make(settings), old = make(settings);
  const auto first = groups_of(*fresh, 0);
  for (auto* trainer : {fresh.get(), old.get()})
    run(*trainer, first);
  const auto groups = groups_of(*fresh, 1);
  // The behaviour plays no part: l_p is found by a forward pass.
  const auto a = run(*fresh, groups), b = run(*old, stale(groups));
  EXPECT_EQ(a.at("policy/loss"), b.at("policy/loss"));
  EXPECT_EQ(a.at("kl/sample"), b.at("kl/sample"));
}

TEST_F(PolicyTrainerRl, RefusesCombinationsThatMakeNoSense) {
  const auto refused = [&](auto change, const char* key) {
    auto settings = settings_of();
    change(settings);
    auto trainer =
        PolicyTrainer::create(std::make_unique<model::ParamStore>(tiny_spec()), settings, team_);
    ASSERT_FALSE(trainer.has_value()) << key;
    EXPECT_NE(trainer.error().message.find(key), std::string::npos) << trainer.error().message;
  };
  refused([](TrainerSettings& s) { s.algo.correction.type = "tis"; }, "algo.correction.type");
  refused([](TrainerSettings& s) { s.algo.objective = "gspo"; }, "algo.reducer");
  refused([](TrainerSettings& s) { s.algo.advantage.gamma = 0.9; }, "algo.advantage.gamma");
  refused([](TrainerSettings& s) { s.algo.dual_clip = 1; }, "actor.dual_clip");
  refused(
      [](TrainerSettings& s) {
        s.algo.kl.init_coef = 1;
        s.algo.kl.estimator = "k1";
      },
      "algo.kl.estimator");
  refused(
      [](TrainerSettings& s) {
        s.algo.objective = "online_dpo";
        s.algo.advantage.estimator = "gae";
      },
      "algo.advantage.estimator");
}

}  // namespace troupe::learn
