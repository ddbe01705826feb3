// What the tests of runtime/net share: a scratch folder, a log that can be waited for, and plain
// blocking sockets and TLS clients that behave badly on request.
#pragma once

#include "runtime/net/openssl.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::net::test {

inline constexpr std::chrono::seconds kPatience{20};  // bounds a wait; no test measures with it

class Scratch {
 public:
  Scratch() {
    char pattern[] = "/tmp/troupe_net_XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

class Log {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    grown_.notify_all();
  }
  // Waits for a line that holds `part`.
  bool saw(const std::string& part) {
    std::unique_lock lock(mutex_);
    return grown_.wait_for(lock, kPatience, [&] { return holds(part); });
  }
  bool has(const std::string& part) {
    const std::lock_guard lock(mutex_);
    return holds(part);
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const auto& line : lines_)
      all += line + "\n";
    return all;
  }

 private:
  bool holds(const std::string& part) const {
    for (const auto& line : lines_) {
      if (line.find(part) != line.npos) return true;
    }
    return false;
  }
  std::mutex mutex_;
  std::condition_variable grown_;
  std::vector<std::string> lines_;
};

// A blocking socket with a receive limit, so that a test can fail but not hang.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) { limit(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  static Socket to(std::uint16_t port, const char* host = "127.0.0.1") {
    Socket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host, &address.sin_addr);
    const int done = ::connect(made.fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    EXPECT_EQ(done, 0) << strerror(errno);
    return made;
  }
  static Socket to(const std::string& path) {
    Socket made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int done = ::connect(made.fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    EXPECT_EQ(done, 0) << path << ": " << strerror(errno);
    return made;
  }
  bool send(const std::string& bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
  void end() const { ::shutdown(fd_, SHUT_WR); }
  // Until the end, an error or `most` bytes. `ended` tells a proper end from an error.
  std::string receive(std::size_t most = std::string::npos, bool* ended = nullptr) const {
    std::string all;
    char buffer[65536];
    while (all.size() < most) {
      const auto n = ::recv(fd_, buffer, std::min(sizeof buffer, most - all.size()), 0);
      if (ended != nullptr) *ended = n == 0;
      if (n <= 0) break;
      all.append(buffer, static_cast<std::size_t>(n));
    }
    return all;
  }
  // True when the other side has ended or reset the connection within the patience.
  bool closed() const {
    char byte;
    const auto n = ::recv(fd_, &byte, 1, 0);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }
  int fd() const { return fd_; }

 private:
  void limit() const {
    const timeval patience{kPatience.count(), 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  int fd_ = -1;
};

// Listens on a free loopback port and runs `serve` on a thread of its own for each connection.
class LocalServer {
 public:
  explicit LocalServer(std::function<void(Socket)> serve, int backlog = 128)
      : serve_(std::move(serve)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(fd_, backlog);
    socklen_t size = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    acceptor_ = std::thread([this] {
      for (;;) {
        const int one = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
        if (one < 0) return;
        ++accepted;
        serving_.emplace_back([this, one] { serve_(Socket(one)); });
      }
    });
  }
  ~LocalServer() {
    ::shutdown(fd_, SHUT_RDWR);
    acceptor_.join();
    ::close(fd_);
    for (auto& one : serving_)
      one.join();
  }
  std::uint16_t port = 0;
  std::atomic<int> accepted{0};

 private:
  std::function<void(Socket)> serve_;
  int fd_ = -1;
  std::thread acceptor_;
  std::vector<std::thread> serving_;
};

// Sends back what it receives, then ends.
inline void echo(Socket socket) {
  char buffer[65536];
  for (;;) {
    const auto n = ::recv(socket.fd(), buffer, sizeof buffer, 0);
    if (n <= 0) break;
    if (!socket.send(std::string(buffer, static_cast<std::size_t>(n)))) return;
  }
  socket.end();
}

// A blocking TLS client of any shape, by OpenSSL alone.
class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port)
      : socket(Socket::to(port)), context(SSL_CTX_new(TLS_client_method())) {}
  bool connect() {
    ssl.reset(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), socket.fd());
    return SSL_connect(ssl.get()) == 1;
  }
  bool send(const std::string& bytes) {
    return SSL_write(ssl.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  // Up to `size` bytes; shorter at the end or at an error.
  std::string receive(std::size_t size) {
    std::string all(size, '\0');
    std::size_t total = 0;
    while (total < size) {
      const int n = SSL_read(ssl.get(), all.data() + total, static_cast<int>(size - total));
      if (n <= 0) break;
      total += static_cast<std::size_t>(n);
    }
    ERR_clear_error();
    all.resize(total);
    return all;
  }
  Socket socket;
  SslContextPtr context;
  SslPtr ssl;
};

}  // namespace troupe::net::test
