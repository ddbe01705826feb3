// Plain Unix and TCP sockets without Asio, for threads that block: listen, connect, check the user
// of the other end, and read and write with a timeout on each wait. The name of a Unix socket is a
// path, or an abstract name that begins with '@'. All descriptors are non-blocking and closed on
// exec. One thread at a time uses a socket.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::net {

using core::OwnedFd;

// The folder of a path must belong to this user and be closed to others (mode 0700). Errors:
// kConfig (name too long, folder missing or open to others), kResources.
core::Result<OwnedFd> listen_unix(const std::string& name);
// Port 0 takes a free one; sets `port` to the port in use. Errors: kConfig (the address),
// kResources.
core::Result<OwnedFd> listen_tcp(const std::string& host, std::uint32_t& port);
OwnedFd accept_one(const OwnedFd& listener);  // a waiting connection; empty if there is none

// Errors: kPeerLost (nobody listens there, or its queue stays full until `until`), kConfig (name
// too long, or a process of another user listens), kResources.
core::Result<OwnedFd> connect_unix(const std::string& name, core::TimePoint until);
// Errors: kPeerLost (refused or unreachable), kDeadline, kConfig (the address), kResources.
core::Result<OwnedFd> connect_tcp(const std::string& host,
                                  std::uint32_t port,
                                  core::TimePoint until);

// After a call that failed: nothing is there or has room now, so the same call may be made again.
inline bool would_block() {
  return errno == EAGAIN || errno == EINTR;
}

// True when the process at the other end runs as this user.
bool same_user(int unix_socket);

// How long a read or write waits for the next byte; the whole transfer may take longer. `given_up`,
// if not null, ends the wait once it is true.
struct Patience {
  core::Duration span;
  const std::atomic<bool>* given_up = nullptr;
};

// These move all bytes or fail: kDeadline (no byte moved for `span`), kPeerLost (the other side
// closed), kClosed (given up). Errors begin with `what` and say how many bytes were moved.
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
// Like receive_all, for bytes that may come with a file descriptor (SCM_RIGHTS), which `passed`
// receives.
core::Result<void> receive_with_fd(const OwnedFd& socket,
                                   void* bytes,
                                   std::size_t size,
                                   OwnedFd& passed,
                                   Patience patience,
                                   const std::string& what);
// One attempt to receive up to `size` bytes that may come with a descriptor; returns what recv
// does.
ssize_t receive_some(const OwnedFd& socket, void* bytes, std::size_t size, OwnedFd& passed);
// Sends bytes together with the descriptor `passed`, in one attempt; false if not all were sent.
bool send_with_fd(const OwnedFd& socket, const void* bytes, std::size_t size, int passed);

}  // namespace troupe::net
