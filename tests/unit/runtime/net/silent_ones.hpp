// A crowd that connects to a port and says nothing, on a thread of its own.
#pragma once

#include "tests/unit/runtime/net/net_support.hpp"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace troupe::net::test {

// Holds many silent connections to a port, and opens another for each that is closed.
class SilentOnes {
 public:
  SilentOnes(std::uint16_t port, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      lines_.push_back(Socket::to(port));
    thread_ = std::thread([this, port] {
      while (!over_) {
        for (Socket& line : lines_) {
          char byte;
          if (::recv(line.fd(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) continue;
          line = Socket::to(port);
          ++again_;
        }
        ::poll(nullptr, 0, 1);
      }
    });
  }
  ~SilentOnes() {
    over_ = true;
    thread_.join();
  }
  std::size_t again() const { return again_; }

 private:
  std::vector<Socket> lines_;
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> again_{0};
  std::thread thread_;
};

}  // namespace troupe::net::test
