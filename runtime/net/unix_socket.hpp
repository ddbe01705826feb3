// Sockets of this host alone, by path or by an abstract name ('@' first), and who is at their other
// end. Plain functions; all descriptors are non-blocking and closed on exec.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <string>
#include <utility>

namespace troupe::net {

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { close(); }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

// A path's folder must belong to this user and be closed to others (mode 0700). Errors: kConfig (too
// long, folder open to others), kResources.
core::Result<OwnedFd> listen_unix(const std::string& name);

// Errors: kPeerLost (nobody listens there), kConfig (too long; another user's process listens).
core::Result<OwnedFd> connect_unix(const std::string& name, core::TimePoint until);

// True when the process at the other end has this user: who connected, or, for who connected, who
// listens.
bool same_user(int unix_socket);

}  // namespace troupe::net
