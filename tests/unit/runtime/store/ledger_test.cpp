// The ledger's records, torn tails and damage.
#include "runtime/store/ledger.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
using store::Ledger;
using store::LedgerRecord;
using Records = std::vector<LedgerRecord>;

Records stored(const std::filesystem::path& path) {
  auto ledger = Ledger::open(path);
  return ledger ? ledger->records() : Records{{999, "unreadable"}};
}

class LedgerFile : public testing::Test {
 protected:
  LedgerFile() : path_(folder_ / "ledger.log") {
    auto ledger = Ledger::open(path_);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      EXPECT_TRUE(ledger->append(step, {"issued " + std::to_string(step)}));
      EXPECT_TRUE(ledger->append(step, {"taken"}));
    }
    EXPECT_TRUE(ledger->sync());
  }
  const Records all_ = {{1, "issued 1"}, {1, "taken"},    {2, "issued 2"},
                        {2, "taken"},    {3, "issued 3"}, {3, "taken"}};
  test::TempFolder folder_;
  std::filesystem::path path_;
};

TEST_F(LedgerFile, ReadsBackWhatWasAppended) {
  EXPECT_EQ(stored(path_), all_);
}

TEST_F(LedgerFile, GoesOnAfterReopening) {
  {
    auto ledger = Ledger::open(path_);
    ASSERT_TRUE(ledger);
    ASSERT_TRUE(ledger->append(4, {""}));
  }
  Records expected = all_;
  expected.push_back({4, ""});
  EXPECT_EQ(stored(path_), expected);
}

TEST_F(LedgerFile, TornTailIsCutAtEveryByte) {
  const std::string whole = test::read_file(path_);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    test::put_file(path_, whole.substr(0, cut));
    auto ledger = Ledger::open(path_);
    ASSERT_TRUE(ledger) << cut;
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<long>(cut), '\n');
    ASSERT_EQ(ledger->records().size(), static_cast<std::size_t>(lines)) << cut;
    ASSERT_TRUE(ledger->append(9, {"after"}));
    const Records now = stored(path_);
    ASSERT_EQ(now.size(), static_cast<std::size_t>(lines) + 1);
    ASSERT_EQ(now.back(), (LedgerRecord{9, "after"}));
  }
}

TEST_F(LedgerFile, EveryFlippedBitIsNoticed) {
  const std::string whole = test::read_file(path_);
  // The last newline apart: without it the last record is a torn tail.
  for (std::size_t at = 0; at + 1 < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      test::put_file(path_, damaged);
      auto ledger = Ledger::open(path_);
      // A capital hexadecimal digit is the same checksum; everything else must be noticed.
      if (ledger) {
        EXPECT_EQ(ledger->records(), all_) << at << " bit " << bit;
        EXPECT_EQ(bit, 5) << at;
      } else {
        EXPECT_EQ(ledger.error().code, core::ErrorCode::kData);
      }
    }
  }
}

TEST_F(LedgerFile, ZeroesAtTheEndAreATornTail) {
  test::put_file(path_, test::read_file(path_) + std::string(100, '\0'));
  auto ledger = Ledger::open(path_);
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->records(), all_);
  EXPECT_EQ(ledger->cut_bytes(), 100u);
}

TEST_F(LedgerFile, CutsBackToAStep) {
  ASSERT_TRUE(store::cut_ledger(path_, 2));
  EXPECT_EQ(stored(path_), Records(all_.begin(), all_.begin() + 4));
  ASSERT_TRUE(store::cut_ledger(path_, std::nullopt));
  EXPECT_EQ(stored(path_), Records{});
}

TEST_F(LedgerFile, CutKeepsEarlierStepsBehindLaterOnes) {
  {
    auto ledger = Ledger::open(path_);
    ASSERT_TRUE(ledger->append(1, {"late"}));
  }
  ASSERT_TRUE(store::cut_ledger(path_, 1));
  EXPECT_EQ(stored(path_), (Records{{1, "issued 1"}, {1, "taken"}, {1, "late"}}));
}

TEST_F(LedgerFile, RefusesNewlines) {
  auto ledger = Ledger::open(path_);
  EXPECT_FALSE(ledger->append(1, {"good", "a\nb"})) << "all or none";
  EXPECT_EQ(stored(path_), all_);
}

TEST(LedgerText, NoFileIsAnEmptyLedger) {
  test::TempFolder folder;
  EXPECT_EQ(stored(folder / "none.log"), Records{});
  EXPECT_TRUE(store::cut_ledger(folder / "other.log", 3));
}

}  // namespace
