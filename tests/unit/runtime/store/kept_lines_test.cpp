// Files of lines that somebody removes, renames, replaces or cuts while they are written.
#include "runtime/store/kept_lines.hpp"

#include "runtime/store/limits.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
namespace fs = std::filesystem;
using store::KeptLines;
using store::updates_text;

std::string row(std::uint64_t step, std::size_t bytes = 0) {
  return "{\"step\":" + std::to_string(step) + ",\"x\":\"" + std::string(bytes, 'x') + "\"}\n";
}

class KeptLinesTest : public testing::Test {
 protected:
  KeptLinesTest() : lines_(*KeptLines::open(path_, &store::step_of_metrics)) {
    for (std::uint64_t step = 1; step <= 3; ++step)
      EXPECT_TRUE(lines_.append(row(step)));
  }
  std::string mend() {
    auto told = lines_.mend();
    if (!told) return "error: " + told.error().message;
    return told->value_or("");
  }
  const std::string whole_ = row(1) + row(2) + row(3);
  test::TempFolder folder_;
  fs::path path_ = folder_ / "metrics.jsonl";
  KeptLines lines_;
};

TEST_F(KeptLinesTest, AFileThatIsThereIsLeftAlone) {
  EXPECT_EQ(mend(), "");
  // Somebody else may add to it; that is no loss.
  std::ofstream(path_, std::ios::app) << "note\n";
  EXPECT_EQ(mend(), "");
}

TEST_F(KeptLinesTest, WhatIsRemovedRenamedOrReplacedIsMadeAgainWhole) {
  fs::remove(path_);
  EXPECT_EQ(mend(),
            "metrics.jsonl was removed or renamed while the run went on; it is made again "
            "with all of its lines");
  EXPECT_EQ(test::read_file(path_), whole_);
  ASSERT_TRUE(lines_.append(row(4)));
  EXPECT_EQ(mend(), "");
  fs::rename(path_, folder_ / "metrics.jsonl.1");
  EXPECT_NE(mend(), "");
  ASSERT_TRUE(lines_.append(row(5)));
  EXPECT_EQ(test::read_file(path_), whole_ + row(4) + row(5));
  EXPECT_EQ(test::read_file(folder_ / "metrics.jsonl.1"), whole_ + row(4)) << "the user's now";
  test::put_file(folder_ / "other", "something else");
  fs::rename(folder_ / "other", path_);
  EXPECT_EQ(mend(),
            "metrics.jsonl was replaced while the run went on; it is made again with all "
            "of its lines");
  EXPECT_EQ(test::read_file(path_), whole_ + row(4) + row(5));
}

TEST_F(KeptLinesTest, WhatIsCutComesFromMemory) {
  for (const std::uintmax_t bytes : {std::uintmax_t{0}, std::uintmax_t{7}, whole_.size() - 1}) {
    fs::resize_file(path_, bytes);
    EXPECT_EQ(mend(),
              "metrics.jsonl was cut while the run went on; it is made again with all of "
              "its lines")
        << bytes;
    EXPECT_EQ(test::read_file(path_), whole_) << bytes;
  }
  // So it does after another opening, which has the lines from the file.
  KeptLines again = *KeptLines::open(path_, &store::step_of_metrics);
  fs::resize_file(path_, 0);
  ASSERT_TRUE(again.mend());
  EXPECT_EQ(test::read_file(path_), whole_);
}

TEST_F(KeptLinesTest, WhatMemoryDoesNotHoldIsToldByUpdates) {
  const std::size_t large = store::limits::kKeptLines_bytes_max / 4;
  for (std::uint64_t step = 4; step <= 9; ++step)
    ASSERT_TRUE(lines_.append(row(step, large)));
  fs::resize_file(path_, row(1).size() + 3);
  EXPECT_EQ(mend(),
            "metrics.jsonl was cut while the run went on; it is made again, but updates 2 "
            "to 6 are missing from it");
  EXPECT_EQ(test::read_file(path_), row(1) + row(7, large) + row(8, large) + row(9, large));
  ASSERT_TRUE(lines_.append(row(10)));
  EXPECT_EQ(mend(), "") << "told once";
}

TEST_F(KeptLinesTest, AFolderInItsPlaceIsAnError) {
  fs::remove(path_);
  fs::create_directories(path_ / "x");
  const auto told = lines_.mend();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, core::ErrorCode::kResources);
}

TEST(UpdatesText, NamesSpans) {
  EXPECT_EQ(updates_text({3}), "update 3");
  EXPECT_EQ(updates_text({3, 4, 5, 9}), "updates 3 to 5 and 9");
  EXPECT_EQ(updates_text({1, 3, 5, 7}), "updates 1, 3, 5 and 7");
  EXPECT_EQ(updates_text({1, 3, 5, 7, 9, 10}), "updates 1, 3, 5, 7 and 2 more");
}

TEST(StepsOfLines, EvaluationsAreNotOfAnUpdate) {
  EXPECT_EQ(store::step_of_metrics(R"({"step":4,"reward/mean":1})"), 4u);
  EXPECT_EQ(store::step_of_metrics(R"({"step":4,"eval/sampled":1,"time/eval":2})"), std::nullopt);
  EXPECT_EQ(store::step_of_metrics(R"({"step":-4})"), std::nullopt);
  EXPECT_EQ(store::step_of_metrics("{"), std::nullopt);
}

}  // namespace
