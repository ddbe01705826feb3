// Two hosts: the gateway in one network namespace, the tunnel in another, a virtual cable between
// them. A thread enters its namespace by setns and the io threads that it starts inherit it. Needs
// root and `ip`; skipped with the reason otherwise.
#include "tests/unit/runtime/net/gateway_support.hpp"

#include <fcntl.h>
#include <sched.h>

namespace troupe::net::test {
namespace {

class TwoHosts : public GatewayFixture {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const std::string id = std::to_string(::getpid());
    left_ = "trl" + id;
    right_ = "trr" + id;
    const std::vector<std::string> commands = {
        " netns add " + left_,
        " netns add " + right_,
        " -n " + left_ + " link add cable type veth peer name cable netns " + right_,
        " -n " + left_ + " addr add 10.77.0.1/24 dev cable",
        " -n " + right_ + " addr add 10.77.0.2/24 dev cable",
        " -n " + left_ + " link set cable up",
        " -n " + right_ + " link set cable up",
        " -n " + left_ + " link set lo up",
        " -n " + right_ + " link set lo up"};
    for (const std::string& command : commands) {
      if (std::system(("ip" + command + " 2>/dev/null").c_str()) != 0) {
        GTEST_SKIP() << "cannot make network namespaces here: ip" << command;
      }
    }
  }
  void TearDown() override {
    for (const auto& name : {left_, right_}) {
      if (name.empty()) continue;
      const std::string command = "ip netns del " + name + " 2>/dev/null";
      [[maybe_unused]] const int status = std::system(command.c_str());
    }
  }
  // Runs `body` on a thread of that host.
  static void on(const std::string& host, const std::function<void()>& body) {
    std::thread([&] {
      const int fd = ::open(("/run/netns/" + host).c_str(), O_RDONLY | O_CLOEXEC);
      ASSERT_GE(fd, 0);
      const int entered = ::setns(fd, CLONE_NEWNET);
      ::close(fd);
      ASSERT_EQ(entered, 0) << strerror(errno);
      body();
    }).join();
  }
  std::string left_, right_;
};

TEST_F(TwoHosts, ANodeReachesTheServiceOfAnotherHost) {
  std::unique_ptr<LocalServer> service;
  std::unique_ptr<async::IoThreads> right_io;
  std::unique_ptr<Gateway> gateway;
  on(left_, [&] {
    service = std::make_unique<LocalServer>(echo);
    Gateway::Hooks hooks;
    hooks.refused = [this](const std::string& line) { log_.add(line); };
    auto open = Gateway::open("10.77.0.1", 0, token_auth(token_), {{"echo", service->port}}, hooks);
    ASSERT_TRUE(open) << open.error().message;
    gateway = std::move(*open);
  });
  ASSERT_TRUE(gateway);
  std::unique_ptr<Tunnel> way;
  on(right_, [&] {
    right_io = std::make_unique<async::IoThreads>(1);
    auto wrong = Tunnel::open(*right_io, "10.77.0.1", gateway->port(), token_auth(*make_token()),
                              "echo", kPatience);
    ASSERT_FALSE(wrong);
    auto open = Tunnel::open(*right_io, "10.77.0.1", gateway->port(), token_auth(token_), "echo",
                             kPatience);
    ASSERT_TRUE(open) << open.error().message;
    way = std::move(*open);
    Socket socket = Socket::to(way->path());
    const std::string bytes(1 << 20, 'b');
    std::thread sender([&] {
      EXPECT_TRUE(socket.send(bytes));
      socket.end();
    });
    EXPECT_TRUE(socket.receive() == bytes);
    sender.join();
    // The service itself is on the other host's loopback alone.
    const int direct = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(service->port);
    ::inet_pton(AF_INET, "10.77.0.1", &address.sin_addr);
    EXPECT_NE(::connect(direct, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(direct);
  });
  EXPECT_TRUE(log_.saw("10.77.0.2:"));
  EXPECT_TRUE(log_.saw("wrong join token"));
}

TEST_F(TwoHosts, ACutCableIsNoticed) {
  std::unique_ptr<async::IoThreads> right_io;
  std::unique_ptr<Gateway> gateway;
  on(left_, [&] {
    auto open = Gateway::open("10.77.0.1", 0, token_auth(token_), {{"echo", 1}}, {});
    ASSERT_TRUE(open) << open.error().message;
    gateway = std::move(*open);
  });
  ASSERT_TRUE(gateway);
  ASSERT_EQ(std::system(("ip -n " + left_ + " link set cable down").c_str()), 0);
  on(right_, [&] {
    right_io = std::make_unique<async::IoThreads>(1);
    auto late = Tunnel::open(*right_io, "10.77.0.1", gateway->port(), token_auth(token_), "echo",
                             std::chrono::milliseconds(300));
    ASSERT_FALSE(late);
    EXPECT_TRUE(late.error().code == core::ErrorCode::kDeadline ||
                late.error().code == core::ErrorCode::kPeerLost)
        << late.error().message;
  });
}

}  // namespace
}  // namespace troupe::net::test
