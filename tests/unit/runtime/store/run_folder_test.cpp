// The run folder: lock, names, cutting back.
#include "runtime/store/run_folder.hpp"

#include "runtime/store/ledger.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
namespace fs = std::filesystem;
using store::RunFolder;

TEST(RunFolder, NamesSortByStep) {
  test::TempFolder temp;
  auto folder = RunFolder::open(temp / "run");
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder->rollouts_file(123), temp / "run" / "rollouts" / "step_000123.jsonl");
  EXPECT_EQ(folder->eval_file(0), temp / "run" / "eval" / "step_000000.jsonl");
  EXPECT_FALSE(folder->has_run());
  test::put_file(folder->config_file(), "x");
  test::put_file(folder->metrics_file(), "");
  fs::create_directories(folder->checkpoint_folder() / ".tmp-1-1-step_000001");
  EXPECT_FALSE(folder->has_run()) << "a start that failed";
  test::put_file(folder->metrics_file(), "{\"step\": 1}\n");
  EXPECT_TRUE(folder->has_run());
  test::put_file(folder->metrics_file(), "");
  fs::create_directories(folder->checkpoint_folder() / "step_000001");
  EXPECT_TRUE(folder->has_run());
}

TEST(RunFolder, KnowsWhenItIsGone) {
  test::TempFolder temp;
  auto folder = RunFolder::open(temp / "run");
  ASSERT_TRUE(folder);
  EXPECT_TRUE(folder->check_here());
  fs::rename(temp / "run", temp / "moved");
  const auto renamed = folder->check_here();
  ASSERT_FALSE(renamed);
  EXPECT_EQ(renamed.error().code, core::ErrorCode::kResources);
  EXPECT_NE(renamed.error().message.find((temp / "run").string()), std::string::npos);
  EXPECT_TRUE(RunFolder::open(temp / "run")) << "another folder of that name";
  EXPECT_FALSE(folder->check_here());
  fs::remove_all(temp / "run");
  fs::rename(temp / "moved", temp / "run");
  EXPECT_TRUE(folder->check_here()) << "put back";
}

TEST(RunFolder, SecondHolderIsRefusedAndNamed) {
  test::TempFolder temp;
  {
    auto first = RunFolder::open(temp / "run");
    ASSERT_TRUE(first);
    auto second = RunFolder::open(temp / "run");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, core::ErrorCode::kResources);
    EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())),
              std::string::npos)
        << second.error().message;
  }
  EXPECT_TRUE(RunFolder::open(temp / "run")) << "free again";
}

TEST(RunFolder, UnwritablePlaceIsAResourceError) {
  auto folder = RunFolder::open("/proc/no/such/run");
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("/proc/no/such/run"), std::string::npos);
}

TEST(RunFolder, CutsBackMetricsRolloutsAndLedger) {
  test::TempFolder temp;
  auto folder = RunFolder::open(temp / "run");
  ASSERT_TRUE(folder);
  std::string metrics, kept;
  {
    auto ledger = store::Ledger::open(folder->ledger_file());
    for (std::uint64_t step = 0; step <= 5; ++step) {
      metrics += "{\"step\": " + std::to_string(step) + ", \"x\": 1.5}\n";
      if (step == 3) kept = metrics;
      test::put_file(folder->rollouts_file(step), "r");
      test::put_file(folder->eval_file(step), "e");
      ASSERT_TRUE(ledger->append(step, {"t"}));
    }
  }
  test::put_file(folder->metrics_file(), metrics + "{\"step\": 6, \"x\"");  // torn by a crash
  ASSERT_TRUE(folder->cut_back(3));
  EXPECT_EQ(test::read_file(folder->metrics_file()), kept);
  EXPECT_TRUE(fs::exists(folder->rollouts_file(3)));
  EXPECT_FALSE(fs::exists(folder->rollouts_file(4)));
  EXPECT_FALSE(fs::exists(folder->eval_file(5)));
  EXPECT_EQ(store::Ledger::open(folder->ledger_file())->records().size(), 4u);

  ASSERT_TRUE(folder->cut_back(std::nullopt));
  EXPECT_EQ(test::read_file(folder->metrics_file()), "");
  EXPECT_FALSE(fs::exists(folder->rollouts_file(0)));
}

TEST(RunFolder, TornMetricsLineIsCutAndDamageIsNamed) {
  test::TempFolder temp;
  const fs::path file = temp / "metrics.jsonl";
  const std::string whole = "{\"step\": 1}\n{\"step\": 2}\n";
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    test::put_file(file, whole.substr(0, cut));
    ASSERT_TRUE(store::cut_metrics(file, 9));
    const std::size_t lines = cut < 12 ? 0 : cut < 24 ? 12 : 24;
    EXPECT_EQ(fs::file_size(file), lines) << cut;
  }
  test::put_file(file, "{\"step\": 1}\nnonsense\n{\"step\": 2}\n");
  auto done = store::cut_metrics(file, 9);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, core::ErrorCode::kData);
  EXPECT_NE(done.error().message.find("metrics.jsonl:2"), std::string::npos);
}

TEST(RunFolder, SetsAsideWithoutLosingEarlierOnes) {
  test::TempFolder temp;
  EXPECT_EQ(*store::set_aside(temp / "run"), "");
  for (const char* name : {"run.old-1", "run.old-2"}) {
    fs::create_directories(temp / "run");
    EXPECT_EQ(*store::set_aside(temp / "run"), temp / name);
    EXPECT_TRUE(fs::exists(temp / name));
    EXPECT_FALSE(fs::exists(temp / "run"));
  }
}

}  // namespace
