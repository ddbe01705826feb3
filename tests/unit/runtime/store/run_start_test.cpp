// What --resume does with what it finds.
#include "runtime/store/run_start.hpp"

#include "tests/unit/runtime/store/saved_checkpoint.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
namespace fs = std::filesystem;

class RunStarts : public testing::Test {
 protected:
  RunStarts() {
    config_.actor.model_name_or_path = "m";
    config_.data.prompt_dataset = "p";
    config_.run.path = (temp_ / "run").string();
  }

  core::Result<store::RunStart> start() { return store::start_run(config_, {}, may_grow_); }

  void save(std::uint64_t step, const fs::path& run) {
    store::CheckpointStore checkpoints(run / "ckpt", 10);
    ASSERT_TRUE(test::save_checkpoint(checkpoints, step, "{}", [](const fs::path& folder) {
      test::put_file(folder / "weights", "w");
      return core::Result<void>{};
    }));
  }

  // A run that reached step 6 with checkpoints at 2 and 4.
  void run_six_steps() {
    auto run = start();
    ASSERT_TRUE(run) << run.error().message;
    std::string metrics;
    for (int step = 1; step <= 6; ++step)
      metrics += "{\"step\": " + std::to_string(step) + "}\n";
    test::put_file(run->folder.metrics_file(), metrics);
    save(2, config_.run.path);
    save(4, config_.run.path);
  }

  std::size_t metric_lines() {
    const std::string text = test::read_file(temp_ / "run/metrics.jsonl");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  test::TempFolder temp_;
  config::TrainConfig config_;
  bool may_grow_ = false;
};

// It had a default once.
TEST_F(RunStarts, AKeyThatNothingReadsMayDiffer) {
  config_.algo.dynamic_filtering_range = {0, 1};
  run_six_steps();
  config_.algo.dynamic_filtering_range.clear();
  EXPECT_TRUE(start());
  config_.algo.dynamic_filtering_enable = true;
  const auto refused = start();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("algo.dynamic_filtering_enable"), std::string::npos)
      << refused.error().message;
}

TEST_F(RunStarts, FirstRunStartsFromTheModel) {
  auto run = start();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_FALSE(run->checkpoint);
  EXPECT_TRUE(run->notes.empty());
  EXPECT_NE(test::read_file(run->folder.config_file()).find("model_name_or_path: \"m\""),
            std::string::npos);
}

TEST_F(RunStarts, AutoGoesOnFromTheNewestAndCutsTheRest) {
  run_six_steps();
  auto run = start();
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_TRUE(run->checkpoint);
  EXPECT_EQ(run->checkpoint->step, 4u);
  EXPECT_EQ(metric_lines(), 4u);
}

TEST_F(RunStarts, AutoPassesOverDamageAndSaysSo) {
  run_six_steps();
  test::put_file(temp_ / "run/ckpt/step_000004/weights", "v");
  auto run = start();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->checkpoint->step, 2u);
  ASSERT_EQ(run->notes.size(), 4u);
  EXPECT_NE(run->notes[0].find("step_000004"), std::string::npos);
  EXPECT_NE(run->notes[1].find("step_000002"), std::string::npos);
  EXPECT_NE(run->notes[2].find("updates 1 to 2 are missing from ledger.log"), std::string::npos);
  EXPECT_NE(run->notes[3].find("updates 1 to 2 are missing from rollouts/"), std::string::npos);
  EXPECT_EQ(metric_lines(), 2u);
}

TEST_F(RunStarts, NoValidCheckpointIsADataError) {
  run_six_steps();
  test::put_file(temp_ / "run/ckpt/step_000004/weights", "v");
  test::put_file(temp_ / "run/ckpt/step_000002/weights", "v");
  auto run = start();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, core::ErrorCode::kData);
  EXPECT_NE(run.error().message.find("--resume off"), std::string::npos);
  EXPECT_EQ(metric_lines(), 6u) << "nothing was touched";
}

TEST_F(RunStarts, AutoRefusesAnotherConfiguration) {
  run_six_steps();
  config_.actor.adam.lr = 5e-5;
  config_.train.threads = 1;  // may change
  auto run = start();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(run.error().message.find("actor.adam.lr was 1e-06 and is 5e-05"), std::string::npos)
      << run.error().message;
  EXPECT_EQ(run.error().message.find("threads"), std::string::npos);
}

// They say in which order gradients are added. A folder of before there were lanes has one.
TEST_F(RunStarts, OtherLanesAreAnotherRun) {
  run_six_steps();
  const fs::path file = temp_ / "run" / "resolved_config.yaml";
  std::string before = test::read_file(file);
  const auto at = before.find("  lanes: 1");
  ASSERT_NE(at, std::string::npos) << before;
  test::put_file(file, before.erase(at, before.find('\n', at) + 1 - at));
  EXPECT_TRUE(start());
  config_.train.lanes = 4;
  const auto run = start();
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().message.find("train.lanes was 1 and is 4; give them as they were, or start "
                                     "a branch"),
            std::string::npos)
      << run.error().message;
}

TEST_F(RunStarts, AnotherConfigurationIsToldHowToBranch) {
  run_six_steps();
  config_.train.seed = 99;
  const auto run = start();
  ASSERT_FALSE(run);
  const std::string flags = "--resume " + (temp_ / "run/ckpt/step_000004").string() +
                            " --run.path " + (temp_ / "run-1").string();
  EXPECT_NE(run.error().message.find(flags), std::string::npos) << run.error().message;
  EXPECT_EQ(run.error().message.find("--resume off"), std::string::npos) << run.error().message;
}

TEST_F(RunStarts, ALongerRunGoesOnWhereNothingAsksForItsLength) {
  config_.train.max_steps = 6;
  may_grow_ = true;
  run_six_steps();
  config_.train.max_steps = 9;
  auto run = start();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->checkpoint->step, 4u);
}

TEST_F(RunStarts, ALongerRunOfAnotherScheduleIsABranch) {
  config_.train.max_steps = 6;
  run_six_steps();
  config_.train.max_steps = 9;
  auto run = start();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(run.error().message.find("learning rate"), std::string::npos) << run.error().message;
  EXPECT_NE(run.error().message.find("step_000004 --run.path "), std::string::npos);
}

TEST_F(RunStarts, AFolderInWhichNothingWasLearnedTakesAnyConfiguration) {
  ASSERT_TRUE(start());
  config_.actor.model_name_or_path = "another";
  auto run = start();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_FALSE(run->checkpoint);
  EXPECT_NE(test::read_file(run->folder.config_file()).find("another"), std::string::npos);
}

TEST_F(RunStarts, ACheckThatRefusesTouchesNothing) {
  run_six_steps();
  const auto refuse = [](const store::Checkpoint& checkpoint,
                         bool branch) -> core::Result<std::vector<std::string>> {
    EXPECT_EQ(checkpoint.step, 4u);
    EXPECT_FALSE(branch);
    return core::fail(core::ErrorCode::kConfig, "other data");
  };
  const auto run = store::start_run(config_, {}, false, refuse);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message, "other data");
  EXPECT_EQ(metric_lines(), 6u);
}

TEST_F(RunStarts, AutoWithoutACheckpointStartsOver) {
  {
    auto run = start();
    test::put_file(run->folder.metrics_file(), "{\"step\": 0}\n{\"step\": 1}\n");
  }
  auto run = start();
  ASSERT_TRUE(run);
  EXPECT_FALSE(run->checkpoint);
  EXPECT_EQ(metric_lines(), 0u);
}

TEST_F(RunStarts, OffSetsTheOldRunAside) {
  run_six_steps();
  config_.resume = "off";
  auto run = start();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_FALSE(run->checkpoint);
  EXPECT_TRUE(fs::exists(temp_ / "run.old-1/ckpt/step_000004"));
  EXPECT_FALSE(fs::exists(temp_ / "run/ckpt/step_000004"));
  ASSERT_EQ(run->notes.size(), 1u);
  EXPECT_NE(run->notes[0].find("run.old-1"), std::string::npos);
}

TEST_F(RunStarts, OffDoesNotMoveARunAtWork) {
  auto running = start();
  ASSERT_TRUE(running);
  config_.resume = "off";
  auto run = start();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, core::ErrorCode::kResources);
  EXPECT_TRUE(fs::exists(temp_ / "run"));
  EXPECT_FALSE(fs::exists(temp_ / "run.old-1"));
}

TEST_F(RunStarts, PathBranchesIntoAFreshFolder) {
  run_six_steps();
  config_.resume = (temp_ / "run/ckpt/step_000002").string();
  config_.run.path = (temp_ / "branch").string();
  config_.actor.adam.lr = 5e-5;
  auto run = start();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->checkpoint->step, 2u);
  EXPECT_EQ(run->folder.path(), temp_ / "branch");
}

TEST_F(RunStarts, ABranchWithoutACheckpointOfItsOwnBeginsWhereItDidBefore) {
  run_six_steps();
  config_.resume = (temp_ / "run/ckpt/step_000004").string();
  config_.run.path = (temp_ / "branch").string();
  std::uint64_t id = 0;
  {
    auto run = start();
    ASSERT_TRUE(run) << run.error().message;
    id = run->folder.generation().run_id();
    test::put_file(run->folder.metrics_file(), "{\"step\": 5}\n{\"step\": 6}\n");
    fs::create_directories(run->folder.experience_folder());
    test::put_file(run->folder.experience_folder() / "step_000007.log", "");
  }
  {
    auto again = start();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->checkpoint->step, 4u);
    EXPECT_EQ(again->first, 4u);
    EXPECT_EQ(again->folder.generation().run_id(), id) << "it is the same run";
    EXPECT_EQ(test::read_file(again->folder.metrics_file()), "");
    EXPECT_TRUE(fs::exists(again->folder.experience_folder() / "step_000007.log"));
    test::put_file(again->folder.metrics_file(), "{\"step\": 5}\n");
  }
  config_.actor.adam.lr = 5e-5;
  EXPECT_FALSE(start()) << "with another configuration it is another branch";
  config_.actor.adam.lr = config::TrainConfig().actor.adam.lr;
  save(5, config_.run.path);
  EXPECT_FALSE(start()) << "it has a checkpoint, which would be lost";
}

TEST_F(RunStarts, PathBehindNewerOnesIsRefused) {
  run_six_steps();
  config_.resume = (temp_ / "run/ckpt/step_000002").string();
  auto run = start();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, core::ErrorCode::kConfig);
  config_.resume = (temp_ / "run/ckpt/step_000004").string();
  run = start();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->checkpoint->step, 4u);
}

TEST_F(RunStarts, PathThatIsNoCheckpointIsADataError) {
  config_.resume = (temp_ / "nothing").string();
  auto run = start();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, core::ErrorCode::kData);
}

}  // namespace
