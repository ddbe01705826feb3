// Whole updates of a tiny random model: bits, accumulation, anchors, skipped steps, sharing of
// panels.
#include "runtime/learn/rl/trainer.hpp"

#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

namespace troupe::learn {
namespace {

TrainerSettings settings_with(std::int64_t micro_tokens_max = 4096) {
  TrainerSettings settings;
  settings.optim.adam.lr = 1e-2;
  settings.batch.micro_tokens_max = micro_tokens_max;
  settings.total_steps = 40;
  return settings;
}

std::unique_ptr<PolicyTrainer> trainer_of(const TrainerSettings& settings,
                                          core::TeamRunner& team,
                                          bool tied = true) {
  auto params = std::make_unique<model::ParamStore>(tiny_spec(tied));
  model::randomise(*params, 11, 0.15f);
  auto trainer = PolicyTrainer::create(std::move(params), settings, team);
  EXPECT_TRUE(trainer.has_value());
  return std::move(trainer).value();
}

bool same_weights(const PolicyTrainer& a, const PolicyTrainer& b) {
  return std::memcmp(a.master().data(), b.master().data(),
                     static_cast<std::size_t>(a.master().size()) * sizeof(float)) == 0;
}

double difference(const PolicyTrainer& a, const PolicyTrainer& b) {
  double most = 0;
  for (std::int64_t i = 0; i < a.master().size(); ++i) {
    most = std::max(most, std::fabs(static_cast<double>(a.master().data()[i]) -
                                    static_cast<double>(b.master().data()[i])));
  }
  return most;
}

std::map<std::string, double> table(const UpdateReport& report) {
  return {report.metrics.begin(), report.metrics.end()};
}

UpdateReport run(PolicyTrainer& trainer, const std::vector<experience::Group>& groups) {
  auto report = trainer.update(groups);
  EXPECT_TRUE(report.has_value()) << (report ? "" : report.error().message);
  return report ? *report : UpdateReport{};
}

// The one group's gradient overflows f32: (A - mean) is 1e300.
std::vector<experience::Group> exploding(std::vector<experience::Group> groups) {
  groups[0].samples[0].score = 1e300;
  return groups;
}

TrainerSettings explosive_settings() {
  auto settings = settings_with();
  settings.algo.advantage.estimator = "dr_grpo";
  settings.algo.reward_clip_low = -1e301;
  settings.algo.reward_clip_high = 1e301;
  settings.optim.nonfinite_steps_max = 2;
  return settings;
}

}  // namespace

TEST(PolicyTrainer, LearnsFromExactLogProbs) {
  core::SerialTeam team;
  auto trainer = trainer_of(settings_with(), team);
  auto other = trainer_of(settings_with(), team);
  const auto groups = random_groups(*trainer->packed(), 0, 3, 4);
  const auto report = run(*trainer, groups);
  EXPECT_EQ(report.version, 1u);
  EXPECT_EQ(report.optimiser_steps, 1);
  EXPECT_EQ(report.skipped_steps, 0);
  auto metrics = table(report);
  // Engine and trainer agree to the bit, so nothing is estimated here.
  EXPECT_EQ(metrics.at("kl/rollout_train"), 0.0);
  EXPECT_EQ(metrics.at("async/ess"), 1.0);
  EXPECT_EQ(metrics.at("policy/ratio_max"), 1.0);
  EXPECT_EQ(metrics.at("async/staleness_max"), 0.0);
  EXPECT_GT(metrics.at("policy/grad_norm"), 0.0);
  EXPECT_NEAR(metrics.at("policy/entropy"), std::log(67.0), 0.5);
  EXPECT_NEAR(metrics.at("policy/lr"), 1e-2 * 1 / 2, 1e-12);
  EXPECT_GT(difference(*trainer, *other), 1e-3);
  // What scored above its group's mean became likelier.
  double gain = 0;
  for (const auto& group : groups) {
    double mean = 0;
    for (const auto& sample : group.samples)
      mean += *sample.score / 4;
    const auto now = exact_logprobs(*trainer->packed(), group);
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t t = 0; t < now[i].size(); ++t) {
        gain += (*group.samples[i].score - mean) *
                static_cast<double>(now[i][t] - group.samples[i].behaviour[t]);
      }
    }
  }
  EXPECT_GT(gain, 0.0);
}

TEST(PolicyTrainer, MicroBatchesAddUpToTheBigBatch) {
  core::SerialTeam team;
  for (const auto reducer : {"token_mean", "sample_mean"}) {
    auto big_settings = settings_with(), small_settings = settings_with(48);
    // A large epsilon makes the step follow the gradient, not its sign.
    for (auto* settings : {&big_settings, &small_settings}) {
      settings->optim.adam.eps = 1.0;
      settings->optim.adam.lr = 1.0;
      settings->optim.lr_warmup_ratio = 0;
      settings->algo.reducer = reducer;
      settings->algo.kl.init_coef = 0.05;
      settings->algo.entropy_coef = 0.01;
    }
    auto big = trainer_of(big_settings, team), small = trainer_of(small_settings, team);
    const auto groups = random_groups(*big->packed(), 0, 4, 6);
    const auto whole = run(*big, groups), parts = run(*small, groups);
    EXPECT_EQ(whole.micro_batches, 1);
    EXPECT_GT(parts.micro_batches, 6);
    const auto a = table(whole), b = table(parts);
    for (const char* name : {"policy/loss", "policy/grad_norm", "kl/ref", "policy/entropy"}) {
      EXPECT_NEAR(a.at(name), b.at(name), 1e-5 * std::fabs(a.at(name))) << name;
    }
    auto start = trainer_of(big_settings, team);
    EXPECT_LT(difference(*big, *small), 1e-5 * difference(*big, *start));
  }
}

TEST(PolicyTrainer, HasTheSameBitsForEveryTeam) {
  for (const bool tied : {true, false}) {
    core::SerialTeam one;
    ThreadTeam two(2);
    auto settings = settings_with(64);
    settings.batch.mini_batches = 2;
    auto a = trainer_of(settings, one, tied), b = trainer_of(settings, two, tied);
    for (std::uint64_t update = 0; update < 2; ++update) {
      const auto groups = random_groups(*a->packed(), update, 4, 4);
      const auto first = run(*a, groups), second = run(*b, groups);
      EXPECT_EQ(first.metrics, second.metrics);
      EXPECT_TRUE(same_weights(*a, *b));
    }
    EXPECT_EQ(a->version(), 4u);
  }
}

TEST(PolicyTrainer, ArrivalOrderDoesNotChangeBits) {
  core::SerialTeam team;
  auto a = trainer_of(settings_with(64), team), b = trainer_of(settings_with(64), team);
  auto groups = random_groups(*a->packed(), 0, 4, 4);
  run(*a, groups);
  std::reverse(groups.begin(), groups.end());
  run(*b, groups);
  EXPECT_TRUE(same_weights(*a, *b));
}

TEST(PolicyTrainer, GroupsWithoutAdvantageAreOnlyLookedAt) {
  core::SerialTeam team;
  auto looking = settings_with(), learning = settings_with();
  // Too small to move an f32, but it makes every group go through the backward pass.
  learning.algo.entropy_coef = 1e-300;
  auto a = trainer_of(looking, team), b = trainer_of(learning, team);
  auto groups = random_groups(*a->packed(), 0, 3, 4);
  for (auto& sample : groups[0].samples)
    sample.score = 0.1;
  const auto first = run(*a, groups), second = run(*b, groups);
  EXPECT_EQ(difference(*a, *b), 0.0);
  EXPECT_EQ(first.micro_batches, 2);
  EXPECT_EQ(second.micro_batches, 1);
  const auto x = table(first), y = table(second);
  EXPECT_NEAR(x.at("policy/zero_advantage_share"), 1.0 / 3, 1e-15);
  for (const char* name : {"policy/loss", "policy/entropy", "policy/grad_norm", "kl/old"}) {
    EXPECT_NEAR(x.at(name), y.at(name), 1e-12) << name;
  }
}

TEST(PolicyTrainer, StaleTokensGetTheirAnchorFromTheStartingPolicy) {
  core::SerialTeam team;
  for (const std::int64_t mini_batches : {1, 2}) {
    auto settings = settings_with(64);
    settings.algo.objective = "ppo";  // l_mu then plays no part but as the anchor
    settings.batch.mini_batches = mini_batches;
    settings.batch.max_epochs = mini_batches;
    auto fresh = trainer_of(settings, team), stale = trainer_of(settings, team);
    auto warm_up = random_groups(*fresh->packed(), 0, 2, 4);
    run(*fresh, warm_up);
    run(*stale, warm_up);
    const auto groups = random_groups(*fresh->packed(), 1, 4, 4);
    auto old = groups;
    experience::VersionRuns& versions = old[2].samples[1].versions;
    const core::Version version = versions.front();
    const std::size_t tokens = versions.size();
    versions = experience::VersionRuns::all(version - 1, 1);
    versions.add(version, tokens - 1);
    for (auto& group : old) {
      for (auto& sample : group.samples) {
        for (float& l : sample.behaviour)
          l -= 0.25f;
      }
    }
    const auto a = table(run(*fresh, groups)), b = table(run(*stale, old));
    EXPECT_TRUE(same_weights(*fresh, *stale));
    EXPECT_EQ(a.at("policy/loss"), b.at("policy/loss"));
    EXPECT_EQ(b.at("async/staleness_max"), 1.0);
    EXPECT_NEAR(b.at("async/rho_mean"), std::exp(0.25), 1e-5);
  }
}

TEST(PolicyTrainer, SkipsAStepThatIsNotFinite) {
  core::SerialTeam team;
  auto trainer = trainer_of(explosive_settings(), team);
  auto untouched = trainer_of(explosive_settings(), team);
  const auto groups = random_groups(*trainer->packed(), 0, 2, 3);
  const auto report = run(*trainer, exploding(groups));
  EXPECT_EQ(report.skipped_steps, 1);
  EXPECT_EQ(report.version, 1u);
  EXPECT_EQ(table(report).at("policy/skipped_steps"), 1.0);
  EXPECT_TRUE(same_weights(*trainer, *untouched));
  EXPECT_EQ(trainer->packed()->version(), 1u);
  // The next update goes on as the very first would, but for the schedule.
  const auto next = run(*trainer, random_groups(*trainer->packed(), 1, 2, 3));
  EXPECT_EQ(next.skipped_steps, 0);
  EXPECT_EQ(next.version, 2u);
  EXPECT_FALSE(same_weights(*trainer, *untouched));
}

TEST(PolicyTrainer, StopsAfterTooManySkippedStepsAndNamesThem) {
  core::SerialTeam team;
  auto trainer = trainer_of(explosive_settings(), team);
  for (std::uint64_t update = 0; update < 2; ++update) {
    run(*trainer, exploding(random_groups(*trainer->packed(), update, 2, 3)));
  }
  // A good step in between starts the count again.
  run(*trainer, random_groups(*trainer->packed(), 2, 2, 3));
  for (std::uint64_t update = 3; update < 5; ++update) {
    run(*trainer, exploding(random_groups(*trainer->packed(), update, 2, 3)));
  }
  const auto last = trainer->update(exploding(random_groups(*trainer->packed(), 5, 2, 3)));
  ASSERT_FALSE(last.has_value());
  EXPECT_EQ(last.error().code, core::ErrorCode::kNumeric);
  EXPECT_NE(last.error().message.find("step 5"), std::string::npos) << last.error().message;
  EXPECT_NE(last.error().message.find("update 6, prompt 1 to update 6, prompt 2"),
            std::string::npos);
}

TEST(PolicyTrainer, ALossThatIsNotFiniteIsSkippedToo) {
  core::SerialTeam team;
  auto settings = settings_with();
  auto params = std::make_unique<model::ParamStore>(tiny_spec());
  model::randomise(*params, 11, 0.15f);
  auto reference = trainer_of(settings, team);
  params->view("model.norm.weight")[3] = std::nanf("");
  auto trainer = PolicyTrainer::create(std::move(params), settings, team);
  ASSERT_TRUE(trainer.has_value());
  const auto report = run(**trainer, random_groups(*reference->packed(), 0, 2, 3));
  EXPECT_EQ(report.skipped_steps, 1);
}

TEST(PolicyTrainer, SharesOneCopyOfThePanels) {
  core::SerialTeam team;
  auto trainer = trainer_of(settings_with(), team);
  auto held = trainer->packed();
  EXPECT_EQ(trainer->packed().get(), held.get());
  const auto groups = random_groups(*held, 0, 2, 3);
  const float before = held->head().f32()[5];
  run(*trainer, groups);
  // A holder keeps what it has; the trainer makes new panels for the new version.
  EXPECT_EQ(held->version(), 0u);
  EXPECT_EQ(held->head().f32()[5], before);
  auto next = trainer->packed();
  EXPECT_EQ(next->version(), 1u);
  EXPECT_NE(next.get(), held.get());
  // Nobody holds them: the same memory is filled again.
  const auto* memory = next.get();
  const auto more = random_groups(*next, 1, 2, 3);
  next.reset();
  run(*trainer, more);
  EXPECT_EQ(trainer->packed().get(), memory);
  EXPECT_EQ(trainer->packed()->version(), 2u);
}

TEST(PolicyTrainer, RefusesIncompleteExperience) {
  core::SerialTeam team;
  auto settings = settings_with();
  settings.algo.kl.init_coef = 0.1;
  auto trainer = trainer_of(settings, team);
  const auto good = random_groups(*trainer->packed(), 4, 2, 3);
  const auto refused = [&](auto change, core::ErrorCode code) {
    auto groups = good;
    change(groups[1].samples[2]);
    const auto result = trainer->update(groups);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find("sample 2 in the group of update 5, prompt 2"),
              std::string::npos)
        << result.error().message;
  };
  using core::ErrorCode;
  refused([](experience::Trajectory& s) { s.behaviour.pop_back(); }, ErrorCode::kInvalidArgument);
  refused([](experience::Trajectory& s) { s.reference.clear(); }, ErrorCode::kInvalidArgument);
  refused([](experience::Trajectory& s) { s.versions.add(0); }, ErrorCode::kInvalidArgument);
  refused(
      [](experience::Trajectory& s) {
        s.versions = experience::VersionRuns::all(1, s.tokens.size());
      },
      ErrorCode::kInvalidArgument);
  refused([](experience::Trajectory& s) { s.behaviour[0] = std::nanf(""); }, ErrorCode::kNumeric);
  refused([](experience::Trajectory& s) { s.score.reset(); }, ErrorCode::kInvalidArgument);
  refused([](experience::Trajectory& s) { s.score = std::nan(""); }, ErrorCode::kNumeric);
  EXPECT_TRUE(trainer->update(good).has_value());
}

TEST(PolicyTrainer, RefusesSettingsThatMakeNoSense) {
  core::SerialTeam team;
  const auto refused = [&](auto change, const char* key) {
    auto settings = settings_with();
    change(settings);
    auto trainer =
        PolicyTrainer::create(std::make_unique<model::ParamStore>(tiny_spec()), settings, team);
    ASSERT_FALSE(trainer.has_value());
    EXPECT_EQ(trainer.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(trainer.error().message.find(key), std::string::npos) << trainer.error().message;
  };
  refused([](TrainerSettings& s) { s.optim.adam.betas[1] = 0.999999999; }, "actor.adam.betas");
  refused([](TrainerSettings& s) { s.optim.adam.lr = -1; }, "actor.adam.lr");
  refused([](TrainerSettings& s) { s.algo.temperature = 0; }, "rollout.temperature");
  refused(
      [](TrainerSettings& s) {  // there is nothing to divide by
        s.algo.reducer = "constant";
        s.algo.shaping.response_tokens_max = 0;
      },
      "algo.reducer_constant");
  refused([](TrainerSettings& s) { s.batch.micro_tokens_max = 0; }, "train.micro_tokens_max");
}

}  // namespace troupe::learn
