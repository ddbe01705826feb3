// The critic's trainer: values at the position before each token, the same bits for any batch,
// learning that follows its loss, and a state that comes back bit for bit.
#include "runtime/learn/rl/critic_trainer.hpp"

#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

namespace troupe::learn {
namespace {

class CriticTrainerTest : public testing::Test {
 protected:
  CriticTrainerTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("troupe_critic_trainer_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CriticTrainerTest() override { std::filesystem::remove_all(folder_); }

  static CriticSettings settings() {
    CriticSettings settings;
    settings.optim.adam.lr = 1e-2;
    settings.optim.lr_warmup_ratio = 0;
    settings.total_steps = 40;
    settings.batch.micro_tokens_max = 64;
    return settings;
  }

  std::unique_ptr<CriticTrainer> make(CriticSettings with = settings(), std::uint64_t seed = 4) {
    auto params = std::make_unique<model::ParamStore>(model::with_score_head(tiny_spec(false)));
    model::randomise(*params, seed, 0.15f);
    return std::move(CriticTrainer::create(std::move(params), with, team_)).value();
  }

  static std::vector<experience::Group> groups(std::size_t count, std::size_t samples) {
    core::Rng rng(11);
    std::vector<experience::Group> result;
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      experience::Group group;
      group.ticket = {0, slot, 0};
      group.prompt = random_tokens(rng, 3 + rng.next_below(12));
      for (std::size_t i = 0; i < samples; ++i) {
        group.samples.emplace_back();
        group.samples.back().tokens = random_tokens(rng, 1 + rng.next_below(14));
      }
      result.push_back(std::move(group));
    }
    return result;
  }

  // Returns that the tokens decide: something to learn.
  static TokenValues targets(const std::vector<experience::Group>& groups) {
    TokenValues result;
    for (const experience::Group& group : groups) {
      result.emplace_back();
      for (const experience::Trajectory& sample : group.samples) {
        const float score = sample.tokens.front() % 2 == 0 ? 1.0f : -1.0f;
        result.back().emplace_back(sample.tokens.size(), score);
      }
    }
    return result;
  }

  static double metric(const CriticReport& report, const std::string& name) {
    for (const auto& [key, value] : report.metrics) {
      if (key == name) return value;
    }
    ADD_FAILURE() << "no metric " << name;
    return std::nan("");
  }

  core::SerialTeam team_;
  std::filesystem::path folder_;
};

}  // namespace

TEST_F(CriticTrainerTest, AValueDependsOnThePositionsBeforeItsTokenAlone) {
  auto trainer = make();
  auto one = groups(1, 2);
  const auto values = trainer->values(one);
  ASSERT_TRUE(values) << values.error().message;
  const auto before = *values;
  // The value of the first token is read at the prompt's last: all samples share it.
  EXPECT_EQ(before[0][0][0], before[0][1][0]);
  auto changed = one;
  changed[0].samples[0].tokens.back() ^= 1;  // nobody's past
  const auto after = trainer->values(changed);
  ASSERT_TRUE(after);
  EXPECT_EQ((*after)[0][0], before[0][0]);
  changed[0].prompt.back() ^= 1;  // everybody's past
  const auto other = trainer->values(changed);
  ASSERT_TRUE(other);
  EXPECT_NE((*other)[0][0][0], before[0][0][0]);
}

TEST_F(CriticTrainerTest, ValuesHaveTheSameBitsAloneAndTogether) {
  auto trainer = make();
  const auto all = groups(5, 3);
  const auto together = trainer->values(all);
  ASSERT_TRUE(together);
  for (std::size_t g = 0; g < all.size(); ++g) {
    const auto alone = trainer->values({all[g]});
    ASSERT_TRUE(alone);
    EXPECT_EQ((*alone)[0], (*together)[g]);
  }
}

TEST_F(CriticTrainerTest, LearnsAndSaysSo) {
  auto trainer = make();
  const auto all = groups(4, 4);
  const auto returns = targets(all);
  double first = 0, last = 0;
  for (int update = 0; update < 12; ++update) {
    const auto old = trainer->values(all);
    ASSERT_TRUE(old);
    const auto report = trainer->update(all, *old, returns);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->version, static_cast<core::Version>(update + 1));
    last = metric(*report, "value/explained_var");
    if (update == 0) first = last;
    EXPECT_GT(metric(*report, "value/grad_norm"), 0);
  }
  EXPECT_LT(first, 0.2);
  EXPECT_GT(last, 0.5) << "explained variance before: " << first;
}

TEST_F(CriticTrainerTest, TheFirstLossIsTheFormulaOnItsOwnValues) {
  auto trainer = make();
  const auto all = groups(3, 2);
  const auto returns = targets(all);
  const auto old = trainer->values(all);
  ASSERT_TRUE(old);
  double sum = 0;
  std::int64_t tokens = 0;
  for (std::size_t g = 0; g < all.size(); ++g) {
    for (std::size_t i = 0; i < all[g].samples.size(); ++i) {
      for (std::size_t t = 0; t < (*old)[g][i].size(); ++t, ++tokens) {
        const double error = static_cast<double>((*old)[g][i][t]) - returns[g][i][t];
        sum += error * error;
      }
    }
  }
  const auto report = trainer->update(all, *old, returns);
  ASSERT_TRUE(report);
  EXPECT_NEAR(metric(*report, "value/loss"), 0.5 * sum / static_cast<double>(tokens), 1e-6);
  EXPECT_EQ(metric(*report, "value/clipfrac"), 0);
}

TEST_F(CriticTrainerTest, MicroBatchesAddUpToTheWholeUpdate) {
  const auto all = groups(6, 3);
  const auto returns = targets(all);
  std::vector<double> losses, norms;
  for (const std::int64_t rows : {40, 4096}) {
    auto with = settings();
    with.batch.micro_tokens_max = rows;
    auto trainer = make(with);
    const auto old = trainer->values(all);
    ASSERT_TRUE(old);
    const auto report = trainer->update(all, *old, returns);
    ASSERT_TRUE(report);
    losses.push_back(metric(*report, "value/loss"));
    norms.push_back(metric(*report, "value/grad_norm"));
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6 * losses[1]);
  EXPECT_NEAR(norms[0], norms[1], 1e-5 * norms[1]);
}

TEST_F(CriticTrainerTest, SpeaksInNormalisedUnitsWhereAsked) {
  auto with = settings();
  with.scale = 0.5;
  with.shift = -3;
  const auto all = groups(2, 2);
  const auto plain = make()->values(all);
  const auto scaled = make(with)->values(all);
  ASSERT_TRUE(plain && scaled);
  EXPECT_FLOAT_EQ((*scaled)[1][0][0], 0.5f * (*plain)[1][0][0] - 3);
}

TEST_F(CriticTrainerTest, FourUpdatesEqualTwoSaveLoadTwo) {
  const auto all = groups(3, 3);
  const auto returns = targets(all);
  const auto run = [&](CriticTrainer& trainer, int updates) {
    for (int i = 0; i < updates; ++i) {
      const auto old = trainer.values(all);
      ASSERT_TRUE(old);
      ASSERT_TRUE(trainer.update(all, *old, returns));
    }
  };
  auto straight = make();
  run(*straight, 4);
  auto first = make();
  run(*first, 2);
  ASSERT_TRUE(first->save_state(folder_));
  auto second = make(settings(), 99);
  ASSERT_TRUE(second->load_state(folder_));
  EXPECT_EQ(second->version(), 2u);
  run(*second, 2);
  EXPECT_EQ(std::memcmp(straight->master().data(), second->master().data(),
                        static_cast<std::size_t>(straight->master().size()) * sizeof(float)),
            0);
}

// Checkpointing keeps less and changes no bit; bf16 panels are other weights.
TEST_F(CriticTrainerTest, CheckpointingChangesNoBitAndPanelsDo) {
  const auto all = groups(3, 3);
  const auto trained = [&](const CriticSettings& with) {
    auto trainer = make(with);
    for (int update = 0; update < 2; ++update) {
      const auto old = trainer->values(all);
      EXPECT_TRUE(old);
      EXPECT_TRUE(trainer->update(all, *old, targets(all)));
    }
    const model::ParamStore& master = trainer->master();
    return std::vector<float>(master.data(), master.data() + master.size());
  };
  const std::vector<float> plain = trained(settings());
  CriticSettings less = settings(), rounded = settings();
  less.optim.gradient_checkpointing_enable = true;
  rounded.optim.panels = kernels::PanelDtype::kBf16;
  EXPECT_TRUE(trained(less) == plain);
  const std::vector<float> other = trained(rounded);
  EXPECT_FALSE(other == plain);
  less.optim.panels = rounded.optim.panels;
  EXPECT_TRUE(trained(less) == other);
}

TEST_F(CriticTrainerTest, ListsThatDoNotFitAreRefused) {
  auto trainer = make();
  const auto all = groups(2, 2);
  auto returns = targets(all);
  const auto old = trainer->values(all);
  ASSERT_TRUE(old);
  returns[1][0].pop_back();
  const auto refused = trainer->update(all, *old, returns);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("returns are not one per token"), std::string::npos);
}

TEST_F(CriticTrainerTest, ReturnsThatAreNoNumbersAreSkippedThenStopTheRun) {
  auto with = settings();
  with.optim.nonfinite_steps_max = 1;
  auto trainer = make(with);
  const auto all = groups(2, 2);
  auto returns = targets(all);
  returns[0][0][0] = std::nanf("");
  const auto old = trainer->values(all);
  ASSERT_TRUE(old);
  const auto skipped = trainer->update(all, *old, returns);
  ASSERT_TRUE(skipped);
  EXPECT_EQ(metric(*skipped, "value/skipped_steps"), 1);
  const auto stopped = trainer->update(all, *old, returns);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, core::ErrorCode::kNumeric);
  EXPECT_NE(stopped.error().message.find("--critic.adam.lr"), std::string::npos)
      << stopped.error().message;
}

}  // namespace troupe::learn
