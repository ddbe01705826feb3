// Everything that listens for a run is fed what it was not made for, before and while it trains:
// random bytes, lengths of a gigabyte, halves of handshakes, idle connections. The run ends with
// the bits of one that was left alone, and its head has not grown.
#include "tests/integration/join_support.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>

#include <random>
#include <set>

namespace troupe::test {
namespace {

// Ports of 127.0.0.1 on which a process listens.
std::set<std::uint16_t> ports_of(pid_t pid) {
  std::set<std::string> sockets;
  std::error_code error;
  const std::filesystem::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::uint16_t> ports;
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream in(line);
    std::string slot, local, remote, state, skipped, inode;
    in >> slot >> local >> remote >> state;
    for (int i = 0; i < 5; ++i)
      in >> skipped;
    in >> inode;
    if (state != "0A" || !sockets.contains(inode)) continue;
    ports.insert(static_cast<std::uint16_t>(std::stoul(local.substr(9), nullptr, 16)));
  }
  return ports;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::istringstream in(text_of(task.path() / "children"));
    for (pid_t child; in >> child;)
      children.push_back(child);
  }
  return children;
}

// A connection from 127.0.0.2, so that what the door remembers of it harms nobody else.
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

std::vector<std::string> garbage(std::mt19937& random) {
  std::string noise(64 << 10, '\0');
  for (char& byte : noise)
    byte = static_cast<char>(random());
  std::string header = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ";
  header += std::string(1 << 20, 'x');
  std::string weights = "TRPUCH01" + std::string(8, '\0') + std::string("\2\0\0\0\0\0\0\0", 8);
  weights += std::string(64, 'k');  // a hello with a wrong key
  return {noise,
          "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
          std::string("\x16\x03\x01\x40\x00\x01\x40\x00\x00\x00", 10),  // half a ClientHello
          std::string("\x40\x00\x00\x00", 4) + noise,                   // a length of a gigabyte
          header,
          weights,
          ""};
}

class JoinGarbage : public Joining {};

TEST_F(JoinGarbage, OnEveryPortHarmsNothing) {
  const Ended local = ends(files_.words("local"), 60);
  ASSERT_EQ(local.status, 0) << local.text;
  Background run = head("run", {"--rollout.generators", "0"});
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  std::set<std::uint16_t> ports;
  // The head's door, status and transport; the policy's weights.
  ASSERT_TRUE(within(30, [&] {
    ports = ports_of(run.pid());
    const std::size_t own = ports.size();
    for (const pid_t child : children_of(run.pid()))
      ports.merge(ports_of(child));
    return own == 3 && ports.size() > own;
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
  EXPECT_TRUE(within(10, [&] { return run.says("refused at the door: 127.0.0.2:"); }))
      << run.text();
  Background node = start({"node", "--join", (files_ / "run").string(), "--name", "far"}, "node");
  while (run.running() && !run.wait(0.2)) {
    for (const std::uint16_t port : ports)
      Stranger(port).say(garbage(random)[0]);
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
