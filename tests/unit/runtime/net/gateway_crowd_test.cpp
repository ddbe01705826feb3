// Many at once: carried bytes move while the gateway's own strand is busy, two hundred tunnels that
// open at the same moment all come in, and so does one behind a crowd that says nothing.
#include "runtime/core/open_files.hpp"
#include "tests/unit/runtime/net/gateway_support.hpp"
#include "tests/unit/runtime/net/silent_ones.hpp"

#include <sys/resource.h>

#include <future>
#include <set>

namespace troupe::net::test {
namespace {

class GatewayCrowd : public GatewayFixture {};

// This process's soft limit on open files, while it lives.
class OpenFiles {
 public:
  explicit OpenFiles(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = most;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~OpenFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

}  // namespace

// The hook that gives passes blocks the strand on which peers prove themselves until a carried
// connection has moved bytes, which it does on another thread.
TEST_F(GatewayCrowd, CarriedBytesMoveWhileAPeerIsLetIn) {
  std::promise<void> asked;
  std::promise<void> moved;
  std::atomic<int> passes{0};
  Gateway::Hooks hooks;
  hooks.pass = [&, wait = moved.get_future().share()](const std::string&, const std::string&) {
    if (++passes == 2) {
      asked.set_value();
      wait.wait();
    }
    return std::string("a-pass");
  };
  auto gateway = Gateway::open("127.0.0.1", 0, token_auth(token_), {{"echo", echo_.port}}, hooks);
  ASSERT_TRUE(gateway) << gateway.error().message;
  auto way = tunnel_to((*gateway)->port(), token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  const Socket carried = Socket::to((*way)->path());
  ASSERT_TRUE(carried.send("begin"));
  ASSERT_EQ(carried.receive(5), "begin");
  auto second = std::async(std::launch::async, [&] {
    return tunnel_to((*gateway)->port(), token_auth(token_)).has_value();
  });
  asked.get_future().wait();
  const std::string bytes(1 << 20, 'x');
  std::thread sender([&] { EXPECT_TRUE(carried.send(bytes)); });
  EXPECT_EQ(carried.receive(bytes.size()), bytes);
  sender.join();
  moved.set_value();
  EXPECT_TRUE(second.get());
}

// A gateway that may take 32 at a time, with a thousand silent ones in its queue. Each was silent
// in the queue for as long as it was there, so whoever speaks need not wait for a turn of every 32.
TEST_F(GatewayCrowd, WhoSpeaksComesInThroughAQueueOfSilentOnes) {
  core::raise_open_files_max();
  {
    const OpenFiles few(128);
    open_gateway(token_auth(token_));
  }
  const SilentOnes crowd(gateway_->port(), 1000);
  for (int i = 0; i < 3; ++i)
    expect_open(token_auth(token_));
  EXPECT_GT(crowd.again(), 1000u) << "they came again meanwhile";
}

TEST_F(GatewayCrowd, TwoHundredTunnelsThatOpenAtOnceAllComeIn) {
  constexpr std::size_t kTunnels = 200;
  core::raise_open_files_max();
  open_gateway(token_auth(token_));
  std::vector<std::future<core::Result<std::unique_ptr<Tunnel>>>> opening;
  for (std::size_t i = 0; i < kTunnels; ++i)
    opening.push_back(
        std::async(std::launch::async, [this] { return tunnel(token_auth(token_)); }));
  std::vector<std::unique_ptr<Tunnel>> tunnels;
  std::set<std::string> passes;
  for (auto& one : opening) {
    auto opened = one.get();
    ASSERT_TRUE(opened) << opened.error().message;
    passes.insert((*opened)->pass());
    tunnels.push_back(std::move(*opened));
  }
  EXPECT_EQ(passes.size(), kTunnels);
  std::vector<Socket> sockets;
  for (const auto& one : tunnels) {
    sockets.push_back(Socket::to(one->path()));
    ASSERT_TRUE(sockets.back().send("there"));
  }
  for (const Socket& socket : sockets)
    EXPECT_EQ(socket.receive(5), "there");
  EXPECT_EQ(log_.text() + tunnel_log_.text(), "");
}

}  // namespace troupe::net::test
