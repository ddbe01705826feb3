#include "runtime/core/open_files.hpp"

#include "runtime/core/owned_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace troupe::core {
namespace {

TEST(OpenFiles, AShareIsAQuarterAtTheMost) {
  EXPECT_EQ(share_of_files(256, 1024), 256u);
  EXPECT_EQ(share_of_files(256, 256), 64u);
  EXPECT_EQ(share_of_files(16, 256), 16u);
  EXPECT_EQ(share_of_files(256, 3), 1u);
}

TEST(OpenFiles, SomeAreKeptForFiles) {
  EXPECT_EQ(kept_for_files(32), 16u);
  EXPECT_EQ(kept_for_files(128), 32u);
  EXPECT_EQ(kept_for_files(256), 64u);
  EXPECT_EQ(kept_for_files(1'000'000), 64u);
}

TEST(OpenFiles, StrangersAreTakenWhileMoreAreFreeThanAreKept) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(open_files_max(), 100u);
  std::vector<OwnedFd> files;
  files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  while (has_room_for_strangers(files.front().get()) && files.size() < 200)
    files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(files.back().get(), 100 - 25 - 1);  // 25 are free
  files.pop_back();
  EXPECT_TRUE(has_room_for_strangers(files.front().get()));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace troupe::core
