// Everything that listens for a run is fed what it was not made for, before and while it trains:
// random bytes, lengths of a gigabyte, halves of handshakes, idle connections, and some hundred
// mutations of what it was made for (TROUPE_GARBAGE_INPUTS of them a port, where that is set). The
// run ends with the bits of one that was left alone, and its head has not grown.
#include "tests/integration/join_support.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <random>

namespace troupe::test {
namespace {

// A connection from 127.0.0.2, so that what the gateway remembers of it harms nobody else.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in from{}, to{};
    from.sin_family = to.sin_family = AF_INET;
    from.sin_addr.s_addr = ::inet_addr("127.0.0.2");
    to.sin_addr.s_addr = ::inet_addr("127.0.0.1");
    to.sin_port = htons(port);
    const timeval limit{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ::bind(socket_, reinterpret_cast<sockaddr*>(&from), sizeof from);
    ok_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  Stranger(Stranger&& other) noexcept : socket_(std::exchange(other.socket_, -1)), ok_(other.ok_) {}
  Stranger& operator=(Stranger&&) = delete;
  ~Stranger() {
    if (socket_ >= 0) ::close(socket_);
  }
  bool connected() const { return ok_; }
  void say(const std::string& bytes) {
    static_cast<void>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

 private:
  int socket_;
  bool ok_ = false;
};

// 32 bytes that end any process whose caf::io 0.17.6 reads them: a greeting without a body.
const std::string kLeastGreeting = std::string(15, '\0') + '\3' + std::string(16, '\0');

std::vector<std::string> garbage(std::mt19937& random) {
  std::string noise(64 << 10, '\0');
  for (char& byte : noise)
    byte = static_cast<char>(random());
  std::string header = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ";
  header += std::string(1 << 20, 'x');
  std::string weights = "TRPUCH01" + std::string(8, '\0') + std::string("\2\0\0\0\0\0\0\0", 8);
  weights += std::string(64, 'k');  // a hello with a wrong key
  return {noise,
          kLeastGreeting,
          "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
          std::string("\x16\x03\x01\x40\x00\x01\x40\x00\x00\x00", 10),  // half a ClientHello
          std::string("\x40\x00\x00\x00", 4) + noise,                   // a length of a gigabyte
          header,
          weights,
          ""};
}

// One of what these ports are made for, or of what they are not, with a few things wrong about it.
std::string mutated(std::mt19937& random) {
  static const std::vector<std::string> seeds = [] {
    std::mt19937 first(11);
    std::vector<std::string> all = garbage(first);
    for (std::string& one : all)
      one.resize(std::min<std::size_t>(one.size(), 512));
    all.push_back("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc");
    all.push_back(
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
        "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    // A whole ClientHello of TLS 1.3, but for its key share.
    all.push_back(std::string("\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03", 11) +
                  std::string(32, 'r') + std::string("\x00\x00\x02\x13\x01\x01\x00\x00\x00", 9));
    return all;
  }();
  const auto below = [&random](std::size_t most) {
    return random() % std::max<std::size_t>(most, 1);
  };
  std::string bytes = seeds[below(seeds.size())];
  for (std::size_t i = 1 + below(4); i > 0 && !bytes.empty(); --i) {
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = "\0\xff\x7f\x80"[below(4)];
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, std::string(below(64), static_cast<char>(random())));
        break;
      default:
        bytes += seeds[below(seeds.size())].substr(0, below(256));
    }
  }
  return bytes;
}

int inputs_a_port() {
  const char* asked = std::getenv("TROUPE_GARBAGE_INPUTS");
  return asked == nullptr ? 300 : std::atoi(asked);
}

class JoinGarbage : public Joining {};

TEST_F(JoinGarbage, OnEveryPortHarmsNothing) {
  const Ended local = ends(files_.words("local"), 60);
  ASSERT_EQ(local.status, 0) << local.text;
  Background run = head("run", {"--rollout.generators", "0"});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  std::set<std::uint16_t> ports;
  // The head's gateway and status; the policy's weights. What speaks CAF has no port.
  ASSERT_TRUE(within(30, [&] {
    ports = ports_of(run.pid());
    const std::size_t own = ports.size();
    for (const pid_t child : children_of(run.pid()))
      ports.merge(ports_of(child));
    return own == 2 && ports.size() == 3;
  })) << run.text();
  const double before_mb = run.memory_mb("VmRSS:");
  double peak_mb = before_mb;
  std::mt19937 random(7);
  std::vector<Stranger> idle;
  for (const std::uint16_t port : ports) {
    for (int i = 0; i < 40; ++i)
      idle.emplace_back(port);
    for (const std::string& bytes : garbage(random)) {
      idle.emplace_back(port);
      idle.back().say(bytes);  // and stays
      Stranger(port).say(bytes);
    }
  }
  for (const std::uint16_t port : ports) {
    for (int i = inputs_a_port(); i > 0; --i)
      Stranger(port).say(mutated(random));
  }
  ASSERT_TRUE(run.running()) << run.text();
  EXPECT_TRUE(within(10, [&] { return run.says("refused at the gateway: 127.0.0.2:"); }))
      << run.text();
  Background node = start({"node", "--join", (files_ / "run").string(), "--name", "far"}, "node");
  EXPECT_TRUE(within(20, [&] { return run.says("node/far joined"); })) << run.text();
  EXPECT_TRUE(ports_of(node.pid()).empty()) << "a node opens no port";
  while (run.running() && !run.wait(0.2)) {
    for (const std::uint16_t port : ports)
      Stranger(port).say(mutated(random));
    peak_mb = std::max(peak_mb, run.memory_mb("VmHWM:"));
  }
  EXPECT_EQ(run.wait(1), 0) << run.text() << node.text();
  EXPECT_EQ(node.wait(10), 0) << node.text();
  EXPECT_LE(peak_mb, before_mb + 64) << "of the head, which had " << before_mb << " MiB";
  std::printf("the head had %.0f MiB, %.0f MiB at most under garbage\n", before_mb, peak_mb);
  expect_same_bits("run", "local");
  expect_clean_ledger("run");
}

}  // namespace
}  // namespace troupe::test
