// The trainer's state on disk: the same bits after a reload, and refusal of what does not fit.
#include "runtime/learn/rl/trainer.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace troupe::learn {
namespace {

class TrainerState : public testing::Test {
 protected:
  TrainerState()
      : folder_(std::filesystem::temp_directory_path() /
                ("troupe_trainer_state_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~TrainerState() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<PolicyTrainer> make(std::uint64_t seed, bool tied = true) {
    TrainerSettings settings;
    settings.optim.adam.lr = 1e-2;
    settings.optim.adam.weight_decay = 0.01;
    settings.total_steps = 12;
    settings.batch.mini_batches = 2;
    settings.batch.micro_tokens_max = 64;
    auto params = std::make_unique<model::ParamStore>(tiny_spec(tied));
    model::randomise(*params, seed, 0.15f);
    return std::move(PolicyTrainer::create(std::move(params), settings, team_)).value();
  }

  static std::vector<std::pair<std::string, double>> run(PolicyTrainer& trainer,
                                                         std::uint64_t update) {
    auto report = trainer.update(random_groups(*trainer.packed(), update, 3, 3));
    EXPECT_TRUE(report.has_value());
    return report ? report->metrics : std::vector<std::pair<std::string, double>>{};
  }

  core::SerialTeam team_;
  std::filesystem::path folder_;
};

}  // namespace

TEST_F(TrainerState, FourUpdatesEqualTwoSaveLoadTwo) {
  auto straight = make(1);
  for (std::uint64_t update = 0; update < 2; ++update)
    run(*straight, update);
  auto first = make(1);
  for (std::uint64_t update = 0; update < 2; ++update)
    run(*first, update);
  ASSERT_TRUE(first->save_state(folder_).has_value());
  auto second = make(99);  // other weights, all replaced
  (void)second->packed();
  ASSERT_TRUE(second->load_state(folder_).has_value());
  EXPECT_EQ(second->version(), 4u);
  for (std::uint64_t update = 2; update < 4; ++update) {
    EXPECT_EQ(run(*straight, update), run(*second, update));
  }
  EXPECT_EQ(std::memcmp(straight->master().data(), second->master().data(),
                        static_cast<std::size_t>(straight->master().size()) * sizeof(float)),
            0);
  EXPECT_EQ(straight->version(), second->version());
}

TEST_F(TrainerState, LoadingReplacesPanelsOfTheSameVersion) {
  auto saved = make(1);
  ASSERT_TRUE(saved->save_state(folder_).has_value());
  auto loaded = make(2);
  const float before = loaded->packed()->head().f32()[0];
  ASSERT_TRUE(loaded->load_state(folder_).has_value());
  EXPECT_NE(loaded->packed()->head().f32()[0], before);
  EXPECT_EQ(loaded->packed()->head().f32()[0], saved->packed()->head().f32()[0]);
}

TEST_F(TrainerState, RefusesTheStateOfAnotherModelAndKeepsItsOwn) {
  ASSERT_TRUE(make(1, false)->save_state(folder_).has_value());
  auto trainer = make(2);
  const float before = trainer->master().data()[0];
  const auto result = trainer->load_state(folder_);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, core::ErrorCode::kData);
  EXPECT_EQ(trainer->master().data()[0], before);
}

TEST_F(TrainerState, RefusesAnIncompleteFolder) {
  auto trainer = make(1);
  EXPECT_EQ(trainer->load_state(folder_).error().code, core::ErrorCode::kNotFound);
  ASSERT_TRUE(trainer->save_state(folder_).has_value());
  std::ofstream(folder_ / "trainer_state.json") << "{\"format\": 1, \"version\": -3}";
  const auto result = trainer->load_state(folder_);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, core::ErrorCode::kData);
  EXPECT_NE(result.error().message.find("trainer_state.json"), std::string::npos);
}

}  // namespace troupe::learn
