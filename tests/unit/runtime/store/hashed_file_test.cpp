// Files that are hashed while they are written: the digest is that of the file.
#include "runtime/store/hashed_file.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace troupe;

// Pieces below and above the size from which another thread hashes, and above that of one
// hand-over.
TEST(HashedFile, HasTheDigestOfTheFile) {
  const test::TempFolder folder;
  std::string text(9u << 20, ' ');
  std::iota(text.begin(), text.end(), '\1');
  for (const std::vector<std::size_t>& pieces :
       {std::vector<std::size_t>{}, {0, 3}, {200'000, 7, 131'072, 131'071}, {9u << 20}}) {
    auto file = store::HashedFile::create(folder / "file");
    ASSERT_TRUE(file);
    std::size_t done = 0;
    for (const std::size_t bytes : pieces) {
      ASSERT_TRUE(file->append(text.data() + done, bytes));
      done += bytes;
    }
    const auto digest = file->close();
    ASSERT_TRUE(digest);
    EXPECT_EQ(digest->bytes, done);
    EXPECT_EQ(digest->sha256, store::sha256_text(text.substr(0, done)));
    EXPECT_TRUE(test::read_file(folder / "file") == text.substr(0, done));
  }
}

TEST(HashedFile, AFullDiskIsAnErrorOfThatPiece) {
  auto file = store::HashedFile::create("/dev/full");
  ASSERT_TRUE(file);
  const std::string text(1u << 20, 'x');
  const auto written = file->append(text.data(), text.size());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, core::ErrorCode::kNoRoom);
}

}  // namespace
