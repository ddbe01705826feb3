// A link between a client and a port that a test can hold, count and spoil: connections to its own
// port are carried to the other one. What comes back is passed on up to a number of bytes, and one
// of its bits may be turned over. Each connection has a thread; they end with the link.
#pragma once

#include "tests/unit/runtime/weights/fixture.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <thread>
#include <vector>

namespace troupe::weights {

class Link {
 public:
  // Without a limit; to a port that may be set later.
  explicit Link(std::uint32_t to = 0) : to_(to) {
    auto listener = net::listen_tcp("127.0.0.1", port_);
    TROUPE_CHECK(listener.has_value(), "listening");
    listener_ = std::move(*listener);
    accepts_ = std::thread([this] { accept_all(); });
  }
  ~Link() {
    ended_ = true;
    accepts_.join();
    for (std::thread& thread : threads_)
      thread.join();
  }

  std::uint32_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void lead_to(std::uint32_t port) { to_ = port; }
  // Passes so many bytes back in all, over all connections.
  void allow(std::uint64_t bytes) { allowed_ = bytes; }
  void allow_all() { allowed_ = ~std::uint64_t{0}; }
  // Of connections that are made from now on, back to the client.
  void pace(std::uint32_t bytes_a_second) { pace_ = bytes_a_second; }
  // Turns a bit of this byte over, counted as `passed` is.
  void spoil(std::uint64_t byte) { spoilt_ = byte; }
  std::uint64_t passed() const { return passed_; }
  std::uint64_t connections() const { return connections_; }

 private:
  static constexpr int kLook_ms = 5;

  void accept_all() {
    while (!ended_) {
      pollfd entry{listener_.get(), POLLIN, 0};
      if (::poll(&entry, 1, kLook_ms) <= 0) continue;
      net::OwnedFd client = net::accept_one(listener_);
      if (!client) continue;
      ++connections_;
      threads_.emplace_back([this, client = std::move(client)] { carry(client); });
    }
  }

  void carry(const net::OwnedFd& client) {
    while (to_ == 0 && !ended_)
      std::this_thread::yield();
    const auto until = std::chrono::steady_clock::now() + kLong;
    const auto server = net::connect_tcp("127.0.0.1", to_, until);
    std::vector<char> bytes(64 << 10);
    const unsigned rate = pace_;
    if (rate != 0) {
      ::setsockopt(client.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
    }
    while (server && !ended_) {
      const bool open = passed_ < allowed_;
      pollfd entries[] = {{client.get(), POLLIN, 0},
                          {server->get(), static_cast<short>(open ? POLLIN : 0), 0}};
      if (::poll(entries, 2, kLook_ms) <= 0) continue;
      if (entries[0].revents != 0) {
        const ssize_t n = ::recv(client.get(), bytes.data(), bytes.size(), 0);
        if (n <= 0 || !send_all(*server, bytes.data(), static_cast<std::size_t>(n), kPatient, "up"))
          return;
      }
      if (entries[1].revents == 0) continue;
      if (!open) return;  // the server has ended
      const std::uint64_t most = std::min<std::uint64_t>(bytes.size(), allowed_ - passed_);
      const ssize_t n = ::recv(server->get(), bytes.data(), most, 0);
      if (n <= 0) return;
      const std::uint64_t from = passed_, to = from + static_cast<std::uint64_t>(n);
      if (spoilt_ >= from && spoilt_ < to) bytes[spoilt_ - from] ^= 4;
      if (!send_all(client, bytes.data(), static_cast<std::size_t>(n), kPatient, "down")) return;
      passed_ = to;
    }
  }

  std::uint32_t port_ = 0;
  net::OwnedFd listener_;
  std::atomic<std::uint32_t> to_, pace_{0};
  std::atomic<std::uint64_t> allowed_{~std::uint64_t{0}}, passed_{0}, spoilt_{~std::uint64_t{0}};
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<bool> ended_{false};
  std::list<std::thread> threads_;
  std::thread accepts_;
};

}  // namespace troupe::weights
