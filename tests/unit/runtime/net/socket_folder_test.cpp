// Folders for sockets: closed to others, gone with their owner, and swept when he was killed.
#include "runtime/net/socket_folder.hpp"

#include "tests/unit/runtime/net/net_support.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

namespace troupe::net::test {
namespace {

namespace fs = std::filesystem;

// TMPDIR is the test's own folder meanwhile.
class SocketFolders : public ::testing::Test {
 protected:
  SocketFolders() {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", scratch_.path.c_str(), 1);
  }
  ~SocketFolders() override {
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(scratch_.path), fs::directory_iterator()));
  }
  // A process that makes a folder with a socket, and is killed.
  void leave_one_behind() const {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto folder = SocketFolder::make();
      const auto socket = listen_unix(folder ? folder->socket("s") : "");
      static_cast<void>(::write(told[1], socket ? "y" : "n", 1));
      ::pause();
    }
    char made = 'n';
    EXPECT_EQ(::read(told[0], &made, 1), 1);
    EXPECT_EQ(made, 'y');
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(told[0]);
    ::close(told[1]);
  }

  Scratch scratch_;
  std::optional<std::string> before_;
};

TEST_F(SocketFolders, AreClosedToOthersAndGoWithTheirOwner) {
  {
    auto folder = SocketFolder::make();
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_TRUE(folder->path().starts_with(scratch_.path.string()));
    struct stat facts {};
    ASSERT_EQ(::stat(folder->path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700u);
    const auto socket = listen_unix(folder->socket("s"));
    ASSERT_TRUE(socket) << socket.error().message;
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(SocketFolders, WhatAKilledProcessLeftIsRemovedByTheNext) {
  leave_one_behind();
  EXPECT_EQ(entries(), 1u);
  auto living = SocketFolder::make();
  ASSERT_TRUE(living);
  EXPECT_EQ(entries(), 1u);
  auto other = SocketFolder::make();
  ASSERT_TRUE(other);
  EXPECT_EQ(entries(), 2u) << "one that lives stays";
  EXPECT_TRUE(fs::exists(living->path()));
}

TEST_F(SocketFolders, WhatIsNotOursStays) {
  const fs::path file = scratch_.path / "troupe-sockets-file",
                 open = scratch_.path / "troupe-sockets-open",
                 full = scratch_.path / "troupe-sockets-full";
  std::ofstream(file) << "x";
  fs::create_directory(open);
  fs::permissions(open, fs::perms(0755));
  fs::create_directory(full);
  fs::permissions(full, fs::perms(0700));
  std::ofstream(full / "file") << "x";
  ASSERT_TRUE(SocketFolder::make());
  EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(fs::exists(open));
  EXPECT_TRUE(fs::exists(full / "file"));
}

TEST_F(SocketFolders, APlaceThatIsTooDeepIsPassedOver) {
  const fs::path deep = scratch_.path / std::string(80, 'd');
  fs::create_directory(deep);
  ::setenv("TMPDIR", deep.c_str(), 1);
  auto folder = SocketFolder::make();
  ASSERT_TRUE(folder);
  EXPECT_TRUE(folder->path().starts_with("/tmp/troupe-sockets-"));
  EXPECT_TRUE(listen_unix(folder->socket("company")));
}

TEST_F(SocketFolders, APlaceThatIsNotThereIsNamed) {
  ::setenv("TMPDIR", (scratch_.path / "none").c_str(), 1);
  const auto folder = SocketFolder::make();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, core::ErrorCode::kResources);
  EXPECT_NE(folder.error().message.find("TMPDIR"), std::string::npos) << folder.error().message;
}

TEST_F(SocketFolders, ASocketInAFolderThatIsOpenToOthersIsRefused) {
  fs::permissions(scratch_.path, fs::perms(0755));
  const auto socket = listen_unix((scratch_.path / "s").string());
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(socket.error().message.find("0700"), std::string::npos);
  const auto longer = listen_unix(std::string(200, 'x'));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(longer.error().message.find("shorter folder"), std::string::npos);
}

}  // namespace
}  // namespace troupe::net::test
