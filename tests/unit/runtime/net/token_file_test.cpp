// Token files as a user leaves them, and the files of a run's CA.
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/run_ca.hpp"
#include "tests/unit/runtime/net/net_support.hpp"

#include <sys/stat.h>

namespace troupe::net::test {
namespace {

unsigned mode_of(const std::filesystem::path& path) {
  struct stat status = {};
  ::stat(path.c_str(), &status);
  return status.st_mode & 0777u;
}

TEST(TokenFile, IsPrivateRandomAndReadBack) {
  const Scratch scratch;
  const auto old = ::umask(0);
  auto one = create_token_file(scratch.path / "one");
  ::umask(old);
  auto two = create_token_file(scratch.path / "two");
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->size(), 64u);
  EXPECT_NE(*one, *two);
  EXPECT_EQ(mode_of(scratch.path / "one"), 0600u);
  auto read = read_token_file(scratch.path / "one");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, *one);
}

TEST(TokenFile, IsNeverOverwritten) {
  const Scratch scratch;
  auto first = create_token_file(scratch.path / "token");
  auto second = create_token_file(scratch.path / "token");
  ASSERT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::ErrorCode::kConfig);
  EXPECT_EQ(*read_token_file(scratch.path / "token"), *first);
}

TEST(TokenFile, ThatOthersCanReadIsRefused) {
  const Scratch scratch;
  const auto path = scratch.path / "token";
  ASSERT_TRUE(create_token_file(path));
  for (const unsigned mode : {0640u, 0604u, 0620u, 0602u}) {
    std::filesystem::permissions(path, std::filesystem::perms(mode));
    auto read = read_token_file(path);
    ASSERT_FALSE(read) << mode;
    EXPECT_NE(read.error().message.find("chmod 600 " + path.string()), std::string::npos);
  }
}

TEST(TokenFile, ThatHoldsNoTokenIsRefused) {
  const Scratch scratch;
  const auto path = scratch.path / "token";
  EXPECT_FALSE(read_token_file(path));
  EXPECT_FALSE(read_token_file(scratch.path));
  ASSERT_TRUE(create_token_file(path));
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string(63, 'a'), std::string(65, 'a'),
        std::string(64, 'A'), std::string(64, 'g')}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(read_token_file(path)) << text;
  }
}

TEST(RunCa, MakesFourFilesAndOverwritesNone) {
  const Scratch scratch;
  RunCaOptions options;
  options.folder = scratch.path / "deep" / "ca";
  options.hosts = {"10.0.0.1", "node-1.example", "fd00::1"};
  auto made = make_run_ca(options);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(mode_of(options.folder / "ca.key"), 0600u);
  EXPECT_EQ(mode_of(options.folder / "node.key"), 0600u);
  std::filesystem::remove(options.folder / "ca.crt");
  auto again = make_run_ca(options);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, core::ErrorCode::kConfig);
  EXPECT_FALSE(std::filesystem::exists(options.folder / "ca.crt"));  // nothing half done
}

TEST(RunCa, RefusesHostsThatAreNone) {
  const Scratch scratch;
  RunCaOptions options;
  options.folder = scratch.path;
  for (const char* host : {"", "a b", "x,DNS:y", "a:b", "email:x@y"}) {
    options.hosts = {host};
    auto made = make_run_ca(options);
    ASSERT_FALSE(made) << host;
    EXPECT_EQ(made.error().code, core::ErrorCode::kConfig);
  }
}

}  // namespace
}  // namespace troupe::net::test
