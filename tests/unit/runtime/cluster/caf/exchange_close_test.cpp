// Closing an exchange never hangs and names what it could not end. Sockets that do not answer, or
// belong to another user, are refused.
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/net/socket_folder.hpp"
#include "tests/unit/runtime/cluster/caf/support.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace troupe::cluster {
namespace {

using namespace testing;

using ExchangeClose = ExchangeTest;

TEST_F(ExchangeClose, ARoleThatWasNotStoppedIsNamedAndNothingHangs) {
  Troupe other;
  auto leaked = *other.exchange->join(identity_of("leaked/0"), other.threads().make_strand());
  const auto closed = other.exchange->close(kPatience);
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("leaked/0"), std::string::npos) << closed.error().message;
  EXPECT_TRUE(other.exchange->close(kPatience)) << "the second time there is nothing left";
  EXPECT_EQ(ask_now(leaked, "leaked/0", "x").error().code, ErrorCode::kClosed);
  other.stop(leaked);
}

TEST_F(ExchangeClose, AnActorThatDoesNotEndIsNamedInsteadOfWaitedFor) {
  std::promise<void> release;
  auto released = release.get_future().share();
  home_.admit = [released](const wire::Hello&, const std::string&) -> Result<void> {
    released.wait();
    return {};
  };
  auto connecting =
      std::async(std::launch::async, [this] { return away_.connect(path_, "away/0", 1, 500ms); });
  EXPECT_EQ(connecting.get().error().code, ErrorCode::kDeadline);
  home_.stop(home_role_);
  const auto closed = home_.exchange->close(100ms);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::kDeadline);
  EXPECT_NE(closed.error().message.find("the exchange's own actor"), std::string::npos);
  release.set_value();
}

TEST_F(ExchangeClose, NothingWorksAfterwards) {
  home_.stop(home_role_);
  EXPECT_TRUE(home_.exchange->close(kPatience));
  EXPECT_TRUE(home_.exchange->close(kPatience));
  EXPECT_EQ(home_.exchange->join(identity_of("x/0"), home_.threads().make_strand()).error().code,
            ErrorCode::kClosed);
  EXPECT_EQ(home_.exchange->listen().error().code, ErrorCode::kClosed);
  EXPECT_EQ(home_.connect(path_, "home/0").error().code, ErrorCode::kClosed);
}

TEST_F(ExchangeClose, TheOtherSideLosesEveryRoleAtOnce) {
  home_.join_echo("home/1");
  connect();
  ASSERT_NE(away_.events.wait("arrived home/1"), "");
  away_.exchange->forget("home/1", {ErrorCode::kPeerLost, "not needed"});
  home_.stop(home_role_);
  EXPECT_NE(away_.events.wait("lost home/0"), "");
}

TEST_F(ExchangeClose, TheSocketAndItsFolderGoWithTheExchange) {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  struct stat facts {};
  ASSERT_EQ(::stat(folder.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  home_.stop(home_role_);
  ASSERT_TRUE(home_.exchange->close(kPatience));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ExchangeClose, PlacesWhereNobodyAnswersAreNamed) {
  auto folder = net::SocketFolder::make();
  ASSERT_TRUE(folder);
  const auto path = folder->socket("mute");
  const auto nobody = away_.connect(path, "away/0");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kPeerLost);
  EXPECT_NE(nobody.error().message.find(path), std::string::npos) << nobody.error().message;

  // Somebody who takes the connection and says nothing.
  const auto mute = net::listen_unix(path);
  ASSERT_TRUE(mute);
  const auto silent = away_.connect(path, "away/0", 1, 300ms);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kDeadline);
  EXPECT_NE(silent.error().message.find(path), std::string::npos);
}

// Another user's process, even one that finds an open folder, is cut off before CAF reads a byte;
// and no process of ours speaks to another user's.
TEST_F(ExchangeClose, AnotherUserIsNeitherHeardNorSpokenTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  std::filesystem::permissions(std::filesystem::path(path_).parent_path(),
                               std::filesystem::perms(0711));
  std::filesystem::permissions(path_, std::filesystem::perms(0777));
  // The least input that ends a process inside caf::io 0.17.6: a greeting without a body.
  const std::string greeting =
      std::string(15, '\0') + '\3' + std::string(8, '\0') + std::string(8, '\0');
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path_.copy(to.sun_path, sizeof to.sun_path - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    char byte = 0;
    const bool cut = ::setresuid(65534, 65534, 65534) == 0 &&
                     ::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    static_cast<void>(::send(socket, greeting.data(), greeting.size(), MSG_NOSIGNAL));
    ::_exit(cut && ::recv(socket, &byte, 1, 0) <= 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(status, 0) << "it was let in, or could not even try";
  connect();  // the exchange is as well as before
  EXPECT_EQ(ask_now(away_role_, "home/0", "x").value(), "home/0 heard x");

  int told[2], held[2];
  ASSERT_EQ(::pipe(told), 0);
  ASSERT_EQ(::pipe(held), 0);
  const std::string place = "@troupe-test-" + std::to_string(::getpid());
  const pid_t listener = ::fork();
  if (listener == 0) {
    ::close(held[1]);
    char byte = 'x';
    const bool other = ::setresuid(65534, 65534, 65534) == 0;
    const auto kept = net::listen_unix(place);
    static_cast<void>(::write(told[1], other && kept ? "y" : "n", 1));
    static_cast<void>(::read(held[0], &byte, 1));
    ::_exit(0);
  }
  ::close(held[0]);
  char listens = 'n';
  ASSERT_EQ(::read(told[0], &listens, 1), 1);
  EXPECT_EQ(listens, 'y');
  const auto theirs = away_.connect(place, "away/0");
  ASSERT_FALSE(theirs);
  EXPECT_NE(theirs.error().message.find("a socket of another user"), std::string::npos)
      << theirs.error().message;
  ::close(held[1]);
  ::waitpid(listener, nullptr, 0);
  ::close(told[0]);
  ::close(told[1]);
}

}  // namespace
}  // namespace troupe::cluster
