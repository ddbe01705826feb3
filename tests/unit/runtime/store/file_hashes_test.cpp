// Hashes of files, kept for as long as the files are what they were.
#include "runtime/store/file_hashes.hpp"

#include "runtime/store/sha256.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>

namespace {

using namespace troupe;
namespace fs = std::filesystem;
using store::cached_sha256;
using store::sha256_of_files;
using store::sha256_text;

class FileHashes : public testing::Test {
 protected:
  FileHashes() { ::setenv("TROUPE_HOME", (temp_ / "home").c_str(), 1); }
  ~FileHashes() override { ::unsetenv("TROUPE_HOME"); }

  // The only entry of the cache.
  fs::path entry() {
    std::error_code error;
    fs::directory_iterator it(temp_ / "home/hashes", error);
    return error || it == fs::directory_iterator() ? fs::path() : it->path();
  }
  // An entry that fits the file as it is, with a hash of the test's own.
  void plant(const fs::path& file, const std::string& hash) {
    struct stat at {};
    ASSERT_EQ(::stat(file.c_str(), &at), 0);
    const auto nanos = [](const timespec& time) {
      return std::to_string(time.tv_sec * 1'000'000'000 + time.tv_nsec);
    };
    fs::create_directories(temp_ / "home/hashes");
    test::put_file(temp_ / "home/hashes" / sha256_text(file.string()),
                   std::to_string(at.st_size) + " " + std::to_string(at.st_dev) + " " +
                       std::to_string(at.st_ino) + " " + nanos(at.st_mtim) + " " +
                       nanos(at.st_ctim) + "\n" + hash + "\n");
  }

  test::TempFolder temp_;
};

TEST_F(FileHashes, AreThoseOfTheContent) {
  test::put_file(temp_ / "a", "one");
  test::put_file(temp_ / "b", "two");
  EXPECT_EQ(*cached_sha256(temp_ / "a"), sha256_text("one"));
  EXPECT_EQ(*sha256_of_files({temp_ / "a"}), sha256_text("one"));
  EXPECT_EQ(*sha256_of_files({temp_ / "a", temp_ / "b"}),
            sha256_text("a " + sha256_text("one") + "\nb " + sha256_text("two") + "\n"));
  EXPECT_EQ(cached_sha256(temp_ / "no").error().code, core::ErrorCode::kNotFound);
  EXPECT_FALSE(sha256_of_files({temp_ / "a", temp_ / "no"}));
}

TEST_F(FileHashes, ALargeFileIsRememberedUnlessItHasJustChanged) {
  using Time = std::chrono::system_clock::time_point;
  test::put_file(temp_ / "a", std::string(1 << 20, 'x'));
  struct stat at {};
  ASSERT_EQ(::stat((temp_ / "a").c_str(), &at), 0);
  const auto time_of = [](const timespec& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const Time changed(std::max(time_of(at.st_mtim), time_of(at.st_ctim)));
  const Time settled = changed + std::chrono::seconds(2);
  for (const Time now : {changed, changed + std::chrono::seconds(1), settled}) {
    ASSERT_TRUE(cached_sha256(temp_ / "a", nullptr, now));
    EXPECT_TRUE(entry().empty());
  }
  const auto hash = cached_sha256(temp_ / "a", nullptr, settled + std::chrono::nanoseconds(1));
  ASSERT_TRUE(hash);
  EXPECT_EQ(entry().filename(), sha256_text((temp_ / "a").string()));
  EXPECT_NE(test::read_file(entry()).find(*hash), std::string::npos);
}

TEST_F(FileHashes, ASmallFileIsNotRemembered) {
  test::put_file(temp_ / "a", std::string((1 << 20) - 1, 'x'));
  const auto later = std::chrono::system_clock::now() + std::chrono::hours(1);
  ASSERT_TRUE(cached_sha256(temp_ / "a", nullptr, later));
  EXPECT_TRUE(entry().empty());
}

TEST_F(FileHashes, ARememberedHashHoldsUntilTheFileChanges) {
  const std::string planted(64, 'a');
  test::put_file(temp_ / "a", "one");
  plant(temp_ / "a", planted);
  EXPECT_EQ(*cached_sha256(temp_ / "a"), planted) << "the file is not read";
  test::put_file(temp_ / "a", "two");
  EXPECT_EQ(*cached_sha256(temp_ / "a"), sha256_text("two"));
  plant(temp_ / "a", "short");
  EXPECT_EQ(*cached_sha256(temp_ / "a"), sha256_text("two")) << "a damaged entry is none";
}

TEST_F(FileHashes, StopWhenAsked) {
  test::put_file(temp_ / "a", "one");
  const std::atomic<bool> stop{true};
  EXPECT_EQ(cached_sha256(temp_ / "a", &stop).error().code, core::ErrorCode::kInterrupted);
}

}  // namespace
