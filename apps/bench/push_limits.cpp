#include "apps/bench/push_limits.hpp"

#include "apps/bench/push_job.hpp"
#include "apps/bench/train_job.hpp"
#include "runtime/core/buffer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

namespace troupe::app {
namespace {

constexpr int kRounds = 4;  // the first does not count
constexpr std::int64_t kCall_bytes = 1 << 20;

double rate(std::int64_t bytes, std::int64_t ns) {
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

core::Failure no_loopback() {
  return core::fail(core::ErrorCode::kResources,
                    std::string("a loopback connection to measure: ") + std::strerror(errno));
}

struct Pair {
  int from = -1, to = -1;
  ~Pair() {
    if (from >= 0) ::close(from);
    if (to >= 0) ::close(to);
  }
};

bool connect_pair(Pair& pair) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool listens = ::bind(listener, any, size) == 0 && ::listen(listener, 1) == 0 &&
                       ::getsockname(listener, any, &size) == 0;
  pair.from = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = listens && ::connect(pair.from, any, size) == 0;
  if (connected) pair.to = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  ::close(listener);
  return pair.to >= 0;
}

}  // namespace

double copy_gb_per_s(core::TeamRunner& team, std::int64_t bytes) {
  core::Buffer<char> from(bytes), to(bytes);
  team.run([&](core::Team member) {
    const auto [begin, end] = member.share(bytes, 64);
    std::memset(from.data() + begin, 1, static_cast<std::size_t>(end - begin));
  });
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t start = clock_ns();
    team.run([&](core::Team member) {
      const auto [begin, end] = member.share(bytes, 64);
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
    });
    if (round > 0) rates.push_back(rate(bytes, clock_ns() - start));
  }
  return median(rates);
}

core::Result<double> loopback_gb_per_s(std::int64_t bytes) {
  core::Buffer<char> from(bytes), to(bytes);
  std::memset(from.data(), 1, static_cast<std::size_t>(bytes));
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    Pair pair;
    if (!connect_pair(pair)) return no_loopback();
    const std::int64_t start = clock_ns();
    std::jthread sender([&] {
      for (std::int64_t done = 0; done < bytes;) {
        const auto most = static_cast<std::size_t>(std::min(kCall_bytes, bytes - done));
        const ssize_t n = ::send(pair.from, from.data() + done, most, MSG_NOSIGNAL);
        if (n <= 0) return;
        done += n;
      }
    });
    for (std::int64_t done = 0; done < bytes;) {
      const auto most = static_cast<std::size_t>(std::min(kCall_bytes, bytes - done));
      const ssize_t n = ::recv(pair.to, to.data() + done, most, 0);
      if (n <= 0) return no_loopback();
      done += n;
    }
    if (round > 0) rates.push_back(rate(bytes, clock_ns() - start));
  }
  return median(rates);
}

}  // namespace troupe::app
