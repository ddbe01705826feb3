// trainer_state.json: what it names, and what is read back.
#include "runtime/learn/state/state_counts.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

constexpr const char* kFile = "trainer_state.json";

TEST(StateCounts, NamesOnlyWhatIsNotAsUsual) {
  const test::TempFolder folder;
  ASSERT_TRUE(write_counts(folder.path(), {.version = 3, .adam_steps = 2, .skipped_in_row = 1}));
  EXPECT_EQ(test::read_file(folder / kFile),
            "{\n  \"adam_steps\": 2,\n  \"format\": 1,\n  \"skipped_in_row\": 1,\n"
            "  \"version\": 3\n}\n");
  const auto counts = read_counts(folder.path());
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->version, 3u);
  EXPECT_EQ(counts->adam_steps, 2);
  EXPECT_EQ(counts->skipped_in_row, 1);
  EXPECT_EQ(counts->lanes, 1);
  EXPECT_EQ(counts->ranks, 0);
  EXPECT_EQ(counts->optim, "adamw");
  EXPECT_FALSE(counts->base_crc);
}

TEST(StateCounts, ReadsBackWhatRanksWithAdaptersWrote) {
  const test::TempFolder folder;
  ASSERT_TRUE(write_counts(
      folder.path(), {.version = 9, .lanes = 5, .ranks = 4, .optim = "muon", .base_crc = 77}));
  const auto counts = read_counts(folder.path());
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->lanes, 5);
  EXPECT_EQ(counts->ranks, 4);
  EXPECT_EQ(counts->optim, "muon");
  EXPECT_EQ(counts->base_crc, 77u);
}

TEST(StateCounts, SaysWhichNumberIsBroken) {
  const test::TempFolder folder;
  EXPECT_EQ(read_counts(folder.path()).error().code, core::ErrorCode::kNotFound);
  const auto message = [&](const std::string& more) {
    test::put_file(folder / kFile,
                   R"({"version": 1, "adam_steps": 1, "skipped_in_row": 0, )" + more);
    const auto counts = read_counts(folder.path());
    return counts ? "" : counts.error().message.substr((folder / kFile).string().size());
  };
  EXPECT_EQ(message(R"("format": 1})"), "");
  EXPECT_EQ(message(R"("format": 2})"), ": needs a whole number 'ranks'");
  EXPECT_EQ(message(R"("format": 2, "ranks": 0})"), ": needs a whole number 'ranks'");
  EXPECT_EQ(message(R"("format": 1, "lanes": "x"})"), ": needs a whole number 'lanes'");
  EXPECT_EQ(message(R"("format": 3})"), ": has format 3, this program reads up to 2");
}

}  // namespace
}  // namespace troupe::learn
