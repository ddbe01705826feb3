// Bytes through a splice and a door over real sockets: all of them, in order, with their ends.
#include "runtime/net/splice.hpp"

#include "tests/unit/runtime/net/door_support.hpp"

#include <algorithm>
#include <random>

namespace troupe::net::test {
namespace {

class SpliceTest : public DoorFixture {};

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
std::string there_and_back(std::uint16_t port, const std::string& bytes) {
  Socket socket = Socket::to(port);
  std::thread sender([&] {
    EXPECT_TRUE(socket.send(bytes));
    socket.end();
  });
  std::string back = socket.receive();
  sender.join();
  return back;
}

}  // namespace

TEST_F(SpliceTest, CarriesByToken) {
  open_door(token_auth(token_));
  expect_open(token_auth(token_));
  EXPECT_EQ(log_.text(), "");
}

TEST_F(SpliceTest, CarriesByCertificate) {
  const DoorAuth auth = ca_auth("ca");
  open_door(auth);
  expect_open(auth);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(SpliceTest, SixtyFourMebibytesComeBackEqual) {
  open_door(token_auth(token_));
  auto way = splice(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  const std::string bytes = random_bytes(64u << 20);
  EXPECT_TRUE(there_and_back((*way)->local_port(), bytes) == bytes);
}

TEST_F(SpliceTest, AnEndOfOneDirectionIsPassedOn) {
  // Answers only when the other side has ended, then goes on for a while.
  LocalServer counter([](Socket socket) {
    const std::string all = socket.receive();
    EXPECT_TRUE(socket.send(std::to_string(all.size()) + std::string(1 << 20, '.')));
  });
  open_door(token_auth(token_));
  door_->set_service("count", counter.port);
  auto way = splice(token_auth(token_), "count");
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->local_port());
  ASSERT_TRUE(socket.send(std::string(100'000, 'x')));
  socket.end();
  bool ended = false;
  EXPECT_EQ(socket.receive(std::string::npos, &ended), "100000" + std::string(1 << 20, '.'));
  EXPECT_TRUE(ended);
}

TEST_F(SpliceTest, ABrokenConnectionIsNoProperEnd) {
  LocalServer breaker([](Socket socket) {
    socket.receive(4);
    socket.send("half");
    const linger hard{1, 0};
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  });
  open_door(token_auth(token_));
  door_->set_service("break", breaker.port);
  auto way = splice(token_auth(token_), "break");
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->local_port());
  ASSERT_TRUE(socket.send("stop"));
  bool ended = true;
  socket.receive(std::string::npos, &ended);
  EXPECT_FALSE(ended);
}

TEST_F(SpliceTest, ManyConnectionsAtOnce) {
  open_door(token_auth(token_));
  auto way = splice(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  constexpr int kConnections = 150;
  std::vector<Socket> sockets;
  for (int i = 0; i < kConnections; ++i) {
    sockets.push_back(Socket::to((*way)->local_port()));
    ASSERT_TRUE(sockets.back().send("number " + std::to_string(i)));
  }
  for (int i = 0; i < kConnections; ++i) {
    const std::string wanted = "number " + std::to_string(i);
    EXPECT_EQ(sockets[static_cast<std::size_t>(i)].receive(wanted.size()), wanted);
  }
  EXPECT_EQ(echo_.accepted, kConnections);
  EXPECT_EQ(log_.text() + splice_log_.text(), "");
}

TEST_F(SpliceTest, ThePassIsHandedOverOnce) {
  open_door(token_auth(token_));
  auto first = splice(token_auth(token_)), second = splice(token_auth(token_));
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->pass(), "pass 1 to echo");
  EXPECT_EQ((*second)->pass(), "pass 2 to echo");
  EXPECT_EQ(there_and_back((*first)->local_port(), "bytes"), "bytes");
  EXPECT_EQ(passes_, 2);  // carried connections are given none
}

TEST_F(SpliceTest, AnUnknownServiceIsNamedAndIsNoFailure) {
  open_door(token_auth(token_));
  for (int i = 0; i < 8; ++i) {
    auto none = splice(token_auth(token_), "weights");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, core::ErrorCode::kNotFound) << none.error().message;
    EXPECT_NE(none.error().message.find("'weights'"), std::string::npos) << none.error().message;
  }
  EXPECT_TRUE(log_.saw("weights: no such service"));
  expect_open(token_auth(token_));
}

TEST_F(SpliceTest, AServiceThatIsGoneResetsTheConnection) {
  open_door(token_auth(token_));
  std::uint16_t gone = 0;
  {
    const LocalServer shortly(echo);
    gone = shortly.port;
  }
  door_->set_service("gone", gone);
  auto way = splice(token_auth(token_), "gone");
  ASSERT_TRUE(way) << way.error().message;
  EXPECT_TRUE(Socket::to((*way)->local_port()).closed());
  EXPECT_TRUE(log_.saw("gone: does not answer"));
  EXPECT_TRUE(splice_log_.saw("does not answer"));
}

TEST_F(SpliceTest, NobodyAtTheDoor) {
  std::uint16_t gone = 0;
  {
    const LocalServer shortly(echo);
    gone = shortly.port;
  }
  auto none = splice_to(gone, token_auth(token_));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(none.error().message.find("door 127.0.0.1:" + std::to_string(gone)), std::string::npos);
}

TEST_F(SpliceTest, ASilentDoorIsGivenUp) {
  LocalServer silent([](Socket socket) { socket.receive(); });
  auto none = Splice::open(io_, "127.0.0.1", silent.port, token_auth(token_), "echo",
                           std::chrono::milliseconds(50));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::ErrorCode::kDeadline) << none.error().message;
}

TEST_F(SpliceTest, StoppingTheDoorEndsWhatItCarries) {
  open_door(token_auth(token_));
  auto way = splice(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->local_port());
  ASSERT_TRUE(socket.send("x"));
  EXPECT_EQ(socket.receive(1), "x");
  door_->stop();
  bool ended = true;
  socket.receive(std::string::npos, &ended);
  EXPECT_FALSE(ended);  // cut off, and it shows
}

TEST_F(SpliceTest, StoppingTheSpliceEndsWhatItCarries) {
  open_door(token_auth(token_));
  auto way = splice(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  Socket socket = Socket::to((*way)->local_port());
  ASSERT_TRUE(socket.send("x"));
  EXPECT_EQ(socket.receive(1), "x");
  (*way)->stop();
  EXPECT_TRUE(socket.closed());
}

}  // namespace troupe::net::test
