// Folders appear whole or not at all.
#include "runtime/store/atomic_folder.hpp"

#include "runtime/store/io_error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

class AtomicFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    parent_ = fs::path(testing::TempDir()) / (std::string("atomic_") + info->name());
    fs::remove_all(parent_);
    fs::create_directories(parent_);
    target_ = parent_ / "step_7";
  }
  void TearDown() override { fs::remove_all(parent_); }

  static std::string content(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(parent_), fs::directory_iterator()));
  }
  void commit(const std::string& text, AtomicFolder::Existing existing) {
    auto folder = AtomicFolder::begin(target_);
    ASSERT_TRUE(folder);
    ASSERT_TRUE(write_file(folder->path() / "a", text));
    ASSERT_TRUE(folder->commit(existing));
  }

  fs::path parent_, target_;
};

TEST_F(AtomicFolderTest, NothingStandsThereBeforeCommit) {
  auto folder = AtomicFolder::begin(target_);
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file(folder->path() / "a", "text"));
  fs::create_directory(folder->path() / "sub");
  ASSERT_TRUE(write_file(folder->path() / "sub" / "b", "more"));
  EXPECT_FALSE(fs::exists(target_));
  ASSERT_TRUE(folder->commit());
  EXPECT_EQ(content(target_ / "a"), "text");
  EXPECT_EQ(content(target_ / "sub" / "b"), "more");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AtomicFolderTest, WithoutCommitNothingStays) {
  { ASSERT_TRUE(AtomicFolder::begin(target_)); }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(AtomicFolderTest, RefusesAFilledTarget) {
  commit("old", AtomicFolder::Existing::kRefuse);
  auto folder = AtomicFolder::begin(target_);
  ASSERT_TRUE(folder);
  const auto result = folder->commit();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, core::ErrorCode::kConfig);
  EXPECT_EQ(content(target_ / "a"), "old");
}

TEST_F(AtomicFolderTest, TakesTheCleanPlaceOfAnEmptyFolder) {
  fs::create_directory(target_);
  commit("new", AtomicFolder::Existing::kRefuse);
  EXPECT_EQ(content(target_ / "a"), "new");
}

TEST_F(AtomicFolderTest, ReplacesWhenAsked) {
  commit("old", AtomicFolder::Existing::kRefuse);
  commit("new", AtomicFolder::Existing::kReplace);
  EXPECT_EQ(content(target_ / "a"), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AtomicFolderTest, LeftoversOfADeadWriterAreRemoved) {
  fs::create_directories(parent_ / ".tmp-1-0-step_3" / "sub");
  commit("kept", AtomicFolder::Existing::kRefuse);
  ASSERT_TRUE(write_file(parent_ / ".tmp-1-step_3.jsonl", "half a li"));
  const auto removed = remove_leftovers(parent_);
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, 2);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AtomicFolderTest, AFullDiskNamesThePathAndWhatToFree) {
  // /dev/full answers every write with ENOSPC.
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const auto result = write_file("/dev/full", "text");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, core::ErrorCode::kNoRoom);
  EXPECT_NE(result.error().message.find("/dev/full"), std::string::npos);
  EXPECT_NE(result.error().message.find("free space"), std::string::npos);
}

TEST(IoError, CodesFollowTheCause) {
  EXPECT_EQ(io_failure("open", "/x", ENOENT).error.code, core::ErrorCode::kNotFound);
  // What may come back pauses a run: space and inodes, quota, open files, memory, processes.
  for (const int error : {ENOSPC, EDQUOT, EMFILE, ENFILE, EAGAIN, ENOMEM})
    EXPECT_EQ(io_failure("write", "/x", error).error.code, core::ErrorCode::kNoRoom) << error;
  EXPECT_EQ(io_failure("write", "/x", EROFS).error.code, core::ErrorCode::kResources);
}

}  // namespace
}  // namespace troupe::store
