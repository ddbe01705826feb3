// Plain sockets without Asio: listen and connect on Unix sockets (by path or by an abstract name,
// '@' first) and TCP, check the user at the other end, and read and write with a limit on
// standstill. No thread of its own; a socket is used by one thread at a time. All descriptors are
// non-blocking and closed on exec.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace troupe::net {

using core::OwnedFd;

// A path's folder must belong to this user and be closed to others (mode 0700). Errors: kConfig
// (too long, folder open to others), kResources.
core::Result<OwnedFd> listen_unix(const std::string& name);
// Port 0: any free one; `port` is set to it. Errors: kConfig (the address), kResources.
core::Result<OwnedFd> listen_tcp(const std::string& host, std::uint32_t& port);
OwnedFd accept_one(const OwnedFd& listener);  // a waiting connection, or none

// Errors: kPeerLost (nobody listens there), kConfig (too long; another user's process listens).
core::Result<OwnedFd> connect_unix(const std::string& name, core::TimePoint until);
// Errors: kPeerLost, kDeadline, kConfig (the address).
core::Result<OwnedFd> connect_tcp(const std::string& host,
                                  std::uint32_t port,
                                  core::TimePoint until);

// True when the process at the other end runs as this user.
bool same_user(int unix_socket);

// How long a read or write waits for the next byte, however long the whole takes. `given_up`, if
// not null, ends the wait once it is true.
struct Patience {
  core::Duration span;
  const std::atomic<bool>* given_up = nullptr;
};

// These move all bytes or fail: kDeadline (nothing moved for the span), kPeerLost (closed after
// `done` bytes of `what`), kClosed (given up).
core::Result<void> send_all(const OwnedFd& socket,
                            const void* bytes,
                            std::size_t size,
                            Patience patience,
                            const std::string& what);
core::Result<void> receive_all(const OwnedFd& socket,
                               void* bytes,
                               std::size_t size,
                               Patience patience,
                               const std::string& what);
// The same for bytes that may bring a descriptor along; none leaves `passed` empty.
core::Result<void> receive_with_fd(const OwnedFd& socket,
                                   void* bytes,
                                   std::size_t size,
                                   OwnedFd& passed,
                                   Patience patience,
                                   const std::string& what);
// One attempt; false when the bytes did not go out whole.
bool send_with_fd(const OwnedFd& socket, const void* bytes, std::size_t size, int passed);

}  // namespace troupe::net
