// What the files of a run folder lack before the checkpoint.
#include "runtime/store/run_gaps.hpp"

#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/ledger.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
namespace fs = std::filesystem;
using Notes = std::vector<std::string>;

class RunGaps : public testing::Test {
 protected:
  RunGaps() : folder_(*store::RunFolder::open(temp_ / "run")) {
    // Updates 1 to 4 of two groups each, an evaluation after 2.
    auto ledger = store::Ledger::open(folder_.ledger_file());
    for (std::uint64_t step = 1; step <= 4; ++step) {
      metrics_ += "{\"step\":" + std::to_string(step) + ",\"reward/mean\":1}\n";
      if (step == 2) metrics_ += "{\"step\":2,\"time/eval\":1}\n";
      EXPECT_TRUE(ledger->append(step, {"{\"slot\":0}", "{\"slot\":1}"}));
      EXPECT_TRUE(store::write_file(folder_.rollouts_file(step),
                                    "{\"slot\":0}\n{\"slot\":0}\n{\"slot\":1}\n"));
    }
    test::put_file(folder_.metrics_file(), metrics_);
  }
  Notes gaps(std::optional<std::uint64_t> first = 0, bool groups = true) {
    auto notes = store::gaps_of(folder_, first, 4, groups);
    EXPECT_TRUE(notes);
    return notes ? *notes : Notes{notes.error().message};
  }
  static Notes missing(const std::string& updates, const std::string& file) {
    return {"warning: " + updates + " missing from " + file +
            ", which was cut or removed before; the run goes on without"};
  }
  test::TempFolder temp_;
  store::RunFolder folder_;
  std::string metrics_;
};

TEST_F(RunGaps, AWholeFolderHasNone) {
  EXPECT_EQ(gaps(), Notes{});
  EXPECT_EQ(gaps(std::nullopt), Notes{}) << "of an earlier version";
}

TEST_F(RunGaps, RowsOfMetrics) {
  test::put_file(folder_.metrics_file(), metrics_.substr(0, metrics_.size() - 28));
  EXPECT_EQ(gaps(), missing("update 4 is", "metrics.jsonl"));
  // The evaluation after update 2 does not stand for it.
  test::put_file(folder_.metrics_file(),
                 "{\"step\":2,\"time/eval\":1}\n{\"step\":4,\"reward/mean\":1}\n");
  EXPECT_EQ(gaps(), missing("updates 1 to 3 are", "metrics.jsonl"));
  EXPECT_EQ(gaps(std::nullopt), Notes{}) << "the run may have begun at update 4";
  fs::remove(folder_.metrics_file());
  EXPECT_EQ(gaps(), missing("updates 1 to 4 are", "metrics.jsonl"));
  EXPECT_EQ(gaps(2), missing("updates 3 to 4 are", "metrics.jsonl")) << "a branch";
}

TEST_F(RunGaps, RecordsOfTheLedgerAndRollouts) {
  const std::string all = test::read_file(folder_.ledger_file());
  const std::size_t record = all.size() / 8;
  test::put_file(folder_.ledger_file(), all.substr(0, 7 * record));
  EXPECT_EQ(gaps(), missing("update 4 is", "ledger.log")) << "one record of two";
  test::put_file(folder_.ledger_file(), all.substr(0, 6 * record - 5));
  EXPECT_EQ(gaps(), missing("updates 3 to 4 are", "ledger.log"));
  test::put_file(folder_.ledger_file(), all);
  fs::remove(folder_.rollouts_file(2));
  EXPECT_EQ(gaps(), missing("update 2 is", "rollouts/"));
  EXPECT_EQ(gaps(0, false), Notes{}) << "a supervised run has none";
}

}  // namespace
