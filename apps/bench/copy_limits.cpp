#include "apps/bench/copy_limits.hpp"

#include "apps/bench/figures.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/shared_memory.hpp"
#include "runtime/net/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::bench {
namespace {

constexpr int kCopyRounds = 4;  // the first does not count
constexpr std::int64_t kCall_bytes = 1 << 20;

double rate(std::int64_t bytes, std::int64_t ns) {
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

core::Failure no_loopback() {
  return core::fail(core::ErrorCode::kResources,
                    std::string("a loopback connection to measure: ") + std::strerror(errno));
}

// Both ends of a blocking loopback connection; `to` is empty when it could not be made.
struct Loopback {
  net::OwnedFd from, to;
};

Loopback connect_loopback() {
  const net::OwnedFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool listens = ::bind(listener.get(), any, size) == 0 && ::listen(listener.get(), 1) == 0 &&
                       ::getsockname(listener.get(), any, &size) == 0;
  Loopback pair{net::OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  if (listens && ::connect(pair.from.get(), any, size) == 0)
    pair.to = net::OwnedFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return pair;
}

}  // namespace

double copy_gb_per_s(core::TeamRunner& team, std::int64_t bytes) {
  core::Buffer<char> from(bytes), to(bytes);
  team.run([&](core::Team member) {
    const auto [begin, end] = member.share(bytes, 64);
    std::memset(from.data() + begin, 1, static_cast<std::size_t>(end - begin));
  });
  std::vector<double> rates;
  for (int round = 0; round < kCopyRounds; ++round) {
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
  for (int round = 0; round < kCopyRounds; ++round) {
    const Loopback pair = connect_loopback();
    if (!pair.to) return no_loopback();
    const std::int64_t start = clock_ns();
    std::jthread sender([&] {
      for (std::int64_t done = 0; done < bytes;) {
        const auto most = static_cast<std::size_t>(std::min(kCall_bytes, bytes - done));
        const ssize_t n = ::send(pair.from.get(), from.data() + done, most, MSG_NOSIGNAL);
        if (n <= 0) return;
        done += n;
      }
    });
    for (std::int64_t done = 0; done < bytes;) {
      const auto most = static_cast<std::size_t>(std::min(kCall_bytes, bytes - done));
      const ssize_t n = ::recv(pair.to.get(), to.data() + done, most, 0);
      if (n <= 0) return no_loopback();
      done += n;
    }
    if (round > 0) rates.push_back(rate(bytes, clock_ns() - start));
  }
  return median(rates);
}

namespace {

// Both ends of a ring of bytes; positions only grow.
struct Ring {
  alignas(64) std::atomic<std::int64_t> written{0};
  alignas(64) std::atomic<std::int64_t> taken{0};
};

// Copies `bytes` from one buffer to another through `window`, by a thread for each half of the way.
// The sender calls it with `out` true.
void through_window(
    Ring& ring, char* window, std::int64_t window_bytes, char* own, std::int64_t bytes, bool out) {
  const std::int64_t piece = std::max<std::int64_t>(window_bytes / 8, 1);
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t there =
        out ? window_bytes - (done - ring.taken.load()) : ring.written.load() - done;
    const std::int64_t begin = done % window_bytes;
    const std::int64_t size = std::min({piece, there, bytes - done, window_bytes - begin});
    if (size <= 0) {
      std::this_thread::yield();
      continue;
    }
    if (out) {
      std::memcpy(window + begin, own + done, static_cast<std::size_t>(size));
    } else {
      std::memcpy(own + done, window + begin, static_cast<std::size_t>(size));
    }
    done += size;
    (out ? ring.written : ring.taken).store(done);
  }
}

}  // namespace

core::Result<double> window_gb_per_s(std::int64_t bytes, std::int64_t window_bytes, int pairs) {
  struct Pair {
    core::SharedMemory window;
    core::Buffer<char> from, to;
    std::unique_ptr<Ring> ring;
  };
  std::vector<Pair> all(static_cast<std::size_t>(pairs));
  for (Pair& pair : all) {
    TROUPE_TRY_SET(pair.window, core::SharedMemory::create("a window to measure",
                                                           static_cast<std::uint64_t>(window_bytes),
                                                           core::SharedMemory::Others::kWrite));
    pair.from = core::Buffer<char>(bytes);
    pair.to = core::Buffer<char>(bytes);
    std::memset(pair.from.data(), 1, static_cast<std::size_t>(bytes));
  }
  std::vector<double> rates;
  for (int round = 0; round < kCopyRounds; ++round) {
    for (Pair& pair : all)
      pair.ring = std::make_unique<Ring>();
    const std::int64_t start = clock_ns();
    {
      std::vector<std::jthread> threads;
      for (Pair& pair : all) {
        for (const bool out : {true, false}) {
          char* const own = (out ? pair.from : pair.to).data();
          threads.emplace_back([&pair, window_bytes, own, bytes, out] {
            through_window(*pair.ring, pair.window.data(), window_bytes, own, bytes, out);
          });
        }
      }
    }
    if (round > 0) rates.push_back(rate(pairs * bytes, clock_ns() - start));
  }
  return median(rates);
}

}  // namespace troupe::bench
