// Bytes through a tunnel and a gateway over real sockets: all of them, in order, with their ends.
#include "runtime/net/tunnel.hpp"

#include "runtime/net/socket_folder.hpp"
#include "tests/unit/runtime/net/gateway_support.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <random>

namespace troupe::net::test {
namespace {

class TunnelTest : public GatewayFixture {};

std::string random_bytes(std::size_t size) {
  std::mt19937_64 generator(7);
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t word = generator();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, bytes.data() + i);
  }
  return bytes;
}

// Sends from another thread, so that neither side waits for room.
std::string there_and_back(const std::string& path, const std::string& bytes) {
  Socket socket = Socket::to(path);
  std::thread sender([&] {
    EXPECT_TRUE(socket.send(bytes));
    socket.end();
  });
  std::string back = socket.receive();
  sender.join();
  return back;
}

}  // namespace

TEST_F(TunnelTest, CarriesByToken) {
  open_gateway(token_auth(token_));
  expect_open(token_auth(token_));
  EXPECT_EQ(log_.text(), "");
}

TEST_F(TunnelTest, CarriesByCertificate) {
  const GatewayAuth auth = ca_auth("ca");
  open_gateway(auth);
  expect_open(auth);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(TunnelTest, SixtyFourMebibytesComeBackEqual) {
  open_gateway(token_auth(token_));
  auto way = tunnel(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  const std::string bytes = random_bytes(64u << 20);
  EXPECT_TRUE(there_and_back((*way)->path(), bytes) == bytes);
}

TEST_F(TunnelTest, AnEndOfOneDirectionIsPassedOn) {
  // Answers only when the other side has ended, then goes on for a while.
  LocalServer counter([](Socket socket) {
    const std::string all = socket.receive();
    EXPECT_TRUE(socket.send(std::to_string(all.size()) + std::string(1 << 20, '.')));
  });
  open_gateway(token_auth(token_));
  gateway_->set_service("count", counter.port);
  auto way = tunnel(token_auth(token_), "count");
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->path());
  ASSERT_TRUE(socket.send(std::string(100'000, 'x')));
  socket.end();
  bool ended = false;
  EXPECT_EQ(socket.receive(std::string::npos, &ended), "100000" + std::string(1 << 20, '.'));
  EXPECT_TRUE(ended);
}

TEST_F(TunnelTest, ABrokenConnectionEndsHereToo) {
  LocalServer breaker([](Socket socket) {
    socket.receive(4);
    socket.send("half");
    const linger hard{1, 0};
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  });
  open_gateway(token_auth(token_));
  gateway_->set_service("break", breaker.port);
  auto way = tunnel(token_auth(token_), "break");
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->path());
  ASSERT_TRUE(socket.send("stop"));
  socket.receive();
  EXPECT_TRUE(socket.closed());
}

TEST_F(TunnelTest, ManyConnectionsAtOnce) {
  open_gateway(token_auth(token_));
  auto way = tunnel(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  constexpr int kConnections = 150;
  std::vector<Socket> sockets;
  for (int i = 0; i < kConnections; ++i) {
    sockets.push_back(Socket::to((*way)->path()));
    ASSERT_TRUE(sockets.back().send("number " + std::to_string(i)));
  }
  for (int i = 0; i < kConnections; ++i) {
    const std::string wanted = "number " + std::to_string(i);
    EXPECT_EQ(sockets[static_cast<std::size_t>(i)].receive(wanted.size()), wanted);
  }
  EXPECT_EQ(echo_.accepted, kConnections);
  EXPECT_EQ(log_.text() + tunnel_log_.text(), "");
}

TEST_F(TunnelTest, ThePassIsHandedOverOnce) {
  open_gateway(token_auth(token_));
  auto first = tunnel(token_auth(token_)), second = tunnel(token_auth(token_));
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->pass(), "pass-1-to-echo");
  EXPECT_EQ((*second)->pass(), "pass-2-to-echo");
  EXPECT_EQ(there_and_back((*first)->path(), "bytes"), "bytes");
  EXPECT_EQ(passes_, 2);  // carried connections are given none
}

TEST_F(TunnelTest, AnUnknownServiceIsNamedAndIsNoFailure) {
  open_gateway(token_auth(token_));
  for (int i = 0; i < 8; ++i) {
    auto none = tunnel(token_auth(token_), "weights");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, core::ErrorCode::kNotFound) << none.error().message;
    EXPECT_NE(none.error().message.find("'weights'"), std::string::npos) << none.error().message;
  }
  EXPECT_TRUE(log_.saw("weights: no such service"));
  expect_open(token_auth(token_));
}

TEST_F(TunnelTest, AServiceThatIsGoneEndsTheConnection) {
  open_gateway(token_auth(token_));
  std::uint16_t gone = 0;
  {
    const LocalServer shortly(echo);
    gone = shortly.port;
  }
  gateway_->set_service("gone", gone);
  auto way = tunnel(token_auth(token_), "gone");
  ASSERT_TRUE(way) << way.error().message;
  EXPECT_TRUE(Socket::to((*way)->path()).closed());
  EXPECT_TRUE(log_.saw("gone: does not answer"));
  EXPECT_TRUE(tunnel_log_.saw("does not answer"));
}

TEST_F(TunnelTest, AServiceMayBeAUnixSocket) {
  auto folder = SocketFolder::make();
  ASSERT_TRUE(folder);
  open_gateway(token_auth(token_));
  gateway_->set_service("local", folder->socket("service"));
  auto early = tunnel(token_auth(token_), "local");
  ASSERT_TRUE(early) << early.error().message;
  EXPECT_TRUE(Socket::to((*early)->path()).closed()) << "nobody listens yet";
  const auto listener = listen_unix(folder->socket("service"));
  ASSERT_TRUE(listener) << listener.error().message;
  Socket near = Socket::to((*early)->path());
  ASSERT_TRUE(near.send("hello"));
  pollfd one{listener->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&one, 1, 20'000), 1);
  const Socket far(::accept(listener->get(), nullptr, nullptr));
  EXPECT_EQ(far.receive(5), "hello");
}

// Another user of this host finds no way in: the folder is closed to him, and so is the socket.
TEST_F(TunnelTest, OnlyProcessesOfTheSameUserMayUseIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  open_gateway(token_auth(token_));
  auto way = tunnel(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  const std::filesystem::path path = (*way)->path();
  const auto as_stranger = [&] {
    const pid_t stranger = ::fork();
    if (stranger == 0) {
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      path.string().copy(address.sun_path, sizeof address.sun_path - 1);
      const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
      if (::setresuid(65534, 65534, 65534) != 0) ::_exit(9);
      if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ::_exit(1);
      static_cast<void>(::send(socket, "x", 1, MSG_NOSIGNAL));
      char byte = 0;
      ::_exit(::recv(socket, &byte, 1, 0) <= 0 ? 2 : 0);
    }
    int status = -1;
    ::waitpid(stranger, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(as_stranger(), 1) << "the folder";
  std::filesystem::permissions(path.parent_path(), std::filesystem::perms(0711));
  std::filesystem::permissions(path, std::filesystem::perms(0777));
  EXPECT_EQ(as_stranger(), 2) << "the socket";
  EXPECT_EQ(echo_.accepted, 0);
  EXPECT_EQ(there_and_back(path, "bytes"), "bytes");
}

TEST_F(TunnelTest, NobodyAtTheGateway) {
  std::uint16_t gone = 0;
  {
    const LocalServer shortly(echo);
    gone = shortly.port;
  }
  auto none = tunnel_to(gone, token_auth(token_));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(none.error().message.find("gateway 127.0.0.1:" + std::to_string(gone)),
            std::string::npos);
}

TEST_F(TunnelTest, ASilentGatewayIsGivenUp) {
  LocalServer silent([](Socket socket) { socket.receive(); });
  auto none = Tunnel::open(io_, "127.0.0.1", silent.port, token_auth(token_), "echo",
                           std::chrono::milliseconds(50));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::ErrorCode::kDeadline) << none.error().message;
}

TEST_F(TunnelTest, StoppingTheGatewayEndsWhatItCarries) {
  open_gateway(token_auth(token_));
  auto way = tunnel(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->path());
  ASSERT_TRUE(socket.send("x"));
  EXPECT_EQ(socket.receive(1), "x");
  gateway_->stop();
  EXPECT_TRUE(socket.closed());
}

TEST_F(TunnelTest, StoppingTheTunnelEndsWhatItCarries) {
  open_gateway(token_auth(token_));
  auto way = tunnel(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->path());
  ASSERT_TRUE(socket.send("x"));
  EXPECT_EQ(socket.receive(1), "x");
  (*way)->stop();
  EXPECT_TRUE(socket.closed());
}

}  // namespace troupe::net::test
