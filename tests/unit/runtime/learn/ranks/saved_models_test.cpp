// The model folders that trainers save: in the type of ckpt.save_dtype, with the bytes that one
// process writes at once, from any number of ranks at any stage.
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;
using model::StorageDtype;
using troupe::test::FilesByName;
using troupe::test::joined_state;

// Makes a trainer of the ranks, changes its weights, and saves its model to `folder`/model, and
// the weights as they are to `folder`/expected.
using SaveRun = std::function<void(const Ranks& ranks, StorageDtype dtype, const fs::path& folder)>;

OptimSettings saving(const Ranks& ranks) {
  OptimSettings optim;
  optim.adam.lr = 1e-2;
  optim.lanes = 4;
  optim.lr_warmup_ratio = 0;
  optim.ranks = ranks;
  return optim;
}

template <class Trainer>
void save_both(Trainer& trainer, const Ranks& ranks, StorageDtype dtype, const fs::path& folder) {
  const auto saved = trainer.save_model(folder / "model", {});
  ASSERT_TRUE(saved) << saved.error().message;
  if (ranks.gang != nullptr) return;
  ASSERT_TRUE(model::save_model(trainer.master(), folder / "expected", dtype, {}));
}

void save_policy(const Ranks& ranks, StorageDtype dtype, const fs::path& folder, bool adapters) {
  core::SerialTeam team;
  TrainerSettings settings;
  settings.optim = saving(ranks);
  settings.batch.micro_tokens_max = 64;
  settings.total_steps = 4;
  settings.save_dtype = dtype;
  if (adapters) settings.optim.trained.lora.rank = 4;
  if (!adapters) settings.ema_beta = 0.5;
  auto made = PolicyTrainer::create(test::start_weights(tiny_spec()), settings, team);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->gather());
  ASSERT_TRUE((*made)->update(random_groups(*(*made)->packed(), 0, 4, 4)));
  save_both(**made, ranks, dtype, folder);
  if (ranks.gang != nullptr || adapters) return;
  ASSERT_TRUE(model::save_model(*(*made)->average(), folder / "expected_ema", dtype, {}));
}

void save_reward_model(const Ranks& ranks, StorageDtype dtype, const fs::path& folder) {
  core::SerialTeam team;
  SupervisedSettings settings;
  settings.loss.method = Chosen<Method>("rm");
  settings.optim = saving(ranks);
  settings.micro_tokens_max = 48;
  settings.total_steps = 4;
  settings.save_dtype = dtype;
  test::SupervisedRun run;
  run.settings = settings;
  auto made = SupervisedTrainer::create(
      test::start_weights(model::with_score_head(tiny_spec(false))), nullptr, settings, team);
  ASSERT_TRUE(made) << made.error().message;
  const data::SupervisedDataset data = run.rows();
  const std::vector<std::uint64_t> rows = {0, 1, 2, 3, 4, 5};
  ASSERT_TRUE((*made)->step(data.rows(rows)));
  (*made)->set_score_scale(0.25, 2);
  save_both(**made, ranks, dtype, folder);
}

void save_critic(const Ranks& ranks, StorageDtype dtype, const fs::path& folder) {
  core::SerialTeam team;
  CriticSettings settings;
  settings.optim = saving(ranks);
  settings.batch = {.micro_tokens_max = 64};
  settings.total_steps = 4;
  settings.save_dtype = dtype;
  auto made = CriticTrainer::create(test::start_weights(model::with_score_head(tiny_spec(false))),
                                    settings, team);
  ASSERT_TRUE(made) << made.error().message;
  const auto language = test::start_weights(tiny_spec());
  model::PackedWeights packed(language->spec());
  team.run([&](core::Team member) { packed.fill(member, *language, 0); });
  const auto groups = random_groups(packed, 3, 4, 4);
  const auto old = (*made)->values(groups);
  ASSERT_TRUE(old) << old.error().message;
  ASSERT_TRUE((*made)->update(groups, *old, *old));
  save_both(**made, ranks, dtype, folder);
}

// Everything below the folder but what the test itself wrote.
std::map<std::string, FilesByName> folders_in(const fs::path& folder) {
  std::map<std::string, FilesByName> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (!entry.path().filename().string().starts_with("expected"))
      found[entry.path().filename()] = joined_state(entry.path());
  return found;
}

void expect_same_folders(const SaveRun& run) {
  for (const StorageDtype dtype : {StorageDtype::kF32, StorageDtype::kBf16}) {
    const troupe::test::TempFolder alone;
    run({}, dtype, alone.path());
    const auto expected = folders_in(alone.path());
    ASSERT_TRUE(expected.contains("model"));
    EXPECT_TRUE(expected.at("model") == joined_state(alone / "expected"));
    if (fs::exists(alone / "expected_ema")) {
      EXPECT_TRUE(expected.at("ema") == joined_state(alone / "expected_ema"));
    }
    for (int stage : {0, 1, 3}) {
      const troupe::test::TempFolder folder;
      test::run_ranks(3, [&](collective::Collectives& gang) {
        run({&gang, stage}, dtype, folder.path());
      });
      EXPECT_TRUE(folders_in(folder.path()) == expected) << "stage " << stage;
    }
  }
}

TEST(SavedModels, OfAPolicyAndItsAverage) {
  expect_same_folders([](const Ranks& ranks, StorageDtype dtype, const fs::path& folder) {
    save_policy(ranks, dtype, folder, false);
  });
}

TEST(SavedModels, WithAdaptersWhichStayF32) {
  const SaveRun run = [](const Ranks& ranks, StorageDtype dtype, const fs::path& folder) {
    save_policy(ranks, dtype, folder, true);
  };
  expect_same_folders(run);
  const troupe::test::TempFolder f32, bf16;
  run({}, StorageDtype::kF32, f32.path());
  run({}, StorageDtype::kBf16, bf16.path());
  EXPECT_TRUE(joined_state(f32 / "adapter") == joined_state(bf16 / "adapter"));
  EXPECT_EQ(joined_state(f32 / "adapter").size(), 2u);
}

TEST(SavedModels, OfARewardModelWithItsScale) {
  expect_same_folders(save_reward_model);
}

TEST(SavedModels, OfACritic) {
  expect_same_folders(save_critic);
}

// Rank 0 alone writes: at stage 3 it hears the others out, and all get its error and go on.
TEST(SavedModels, AnErrorOfTheWriterIsThatOfAll) {
  for (int stage : {1, 3}) {
    test::run_ranks(3, [&](collective::Collectives& gang) {
      core::SerialTeam team;
      TrainerSettings settings;
      settings.optim = saving({&gang, stage});
      settings.batch.micro_tokens_max = 64;
      settings.total_steps = 4;
      auto made = PolicyTrainer::create(test::start_weights(tiny_spec()), settings, team);
      ASSERT_TRUE(made);
      for (int update = 0; update < 2; ++update) {
        ASSERT_TRUE((*made)->gather());
        ASSERT_TRUE((*made)->update(random_groups(*(*made)->packed(), 0, 4, 4)));
        const auto saved = (*made)->save_model("/dev/null/model", {});
        ASSERT_FALSE(saved);
        EXPECT_NE(saved.error().message.find("/dev/null"), std::string::npos);
      }
    });
  }
}

}  // namespace
}  // namespace troupe::learn
