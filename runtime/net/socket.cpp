#include "runtime/net/socket.hpp"

#include "runtime/core/texts.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

namespace troupe::net {
namespace {

core::Failure system_failure(ErrorCode code, const std::string& what) {
  return fail(code, what + ": " + std::strerror(errno));
}

struct UnixAddress {
  sockaddr_un address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

core::Result<UnixAddress> unix_address(const std::string& name) {
  UnixAddress result;
  result.address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof result.address.sun_path) {
    return fail(ErrorCode::kConfig,
                "the name of the socket '" + name + "' has " + std::to_string(name.size()) +
                    " characters; the system takes 1 to " +
                    std::to_string(sizeof result.address.sun_path - 1),
                "choose a shorter folder");
  }
  std::memcpy(result.address.sun_path, name.data(), name.size());
  if (name[0] == '@') result.address.sun_path[0] = '\0';
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() +
                                       (name[0] == '@' ? 0 : 1));
  return result;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

core::Result<AddressList> resolve(const std::string& host, std::uint32_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0)
    return fail(ErrorCode::kConfig, "the address '" + host + "': " + ::gai_strerror(status));
  return AddressList(found, &freeaddrinfo);
}

// Waits until `events` (of poll) occur; false if they did not before `until`.
bool wait_for(int fd, short events, core::TimePoint until) {
  for (;;) {
    const auto left = until - std::chrono::steady_clock::now();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000)));
    if (ready > 0) return true;
    if (ready == 0 && ms <= 60'000) return false;
  }
}

enum class Waited { kMoves, kLate, kGivenUp };

Waited wait_for_bytes(const OwnedFd& socket, short events, const Patience& patience) {
  constexpr core::Duration kLook = std::chrono::milliseconds(100);
  const core::TimePoint until = std::chrono::steady_clock::now() + patience.span;
  for (;;) {
    if (patience.given_up != nullptr && patience.given_up->load()) return Waited::kGivenUp;
    const core::TimePoint now = std::chrono::steady_clock::now();
    if (wait_for(socket.get(), events, std::min(until, now + kLook))) return Waited::kMoves;
    if (std::chrono::steady_clock::now() >= until) return Waited::kLate;
  }
}

std::string progress(std::size_t done, std::size_t size) {
  return " after " + std::to_string(done) + " of " + std::to_string(size) + " bytes";
}

core::Failure other_side_closed(const std::string& what, std::size_t done, std::size_t size) {
  return fail(ErrorCode::kPeerLost, what + ": the other side closed" + progress(done, size));
}

// The error after a wait in which no byte moved.
core::Failure stood_still(Waited waited,
                          const Patience& patience,
                          const std::string& what,
                          std::size_t done,
                          std::size_t size) {
  if (waited == Waited::kGivenUp) return fail(ErrorCode::kClosed, what + ": given up here");
  const double seconds = std::chrono::duration<double>(patience.span).count();
  const auto limit = core::printed("%.3g s", seconds);
  return fail(ErrorCode::kDeadline, what + ": nothing moved for " + limit + progress(done, size));
}

core::Result<OwnedFd> finish_connect(OwnedFd socket,
                                     const sockaddr* address,
                                     socklen_t size,
                                     const std::string& where,
                                     core::TimePoint until) {
  int status = 0;
  while ((status = ::connect(socket.get(), address, size)) != 0 && errno == EINTR) {
  }
  // A Unix listener whose queue is full makes connect fail with EAGAIN; try again.
  while (status != 0 && errno == EAGAIN && std::chrono::steady_clock::now() < until) {
    ::poll(nullptr, 0, 1);
    status = ::connect(socket.get(), address, size);
  }
  if (status == 0) return socket;
  if (errno != EINPROGRESS) return system_failure(ErrorCode::kPeerLost, "cannot reach " + where);
  if (!wait_for(socket.get(), POLLOUT, until))
    return fail(ErrorCode::kDeadline, where + " did not answer in time");
  int error = 0;
  socklen_t error_size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &error_size);
  errno = error;
  if (error != 0) return system_failure(ErrorCode::kPeerLost, "cannot reach " + where);
  return socket;
}

// Checks that the folder of a socket belongs to this user and is closed to others.
core::Result<void> check_folder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1) + ".";
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0)
    return system_failure(ErrorCode::kConfig, "the folder of the socket " + path);
  if (facts.st_uid == ::geteuid() && (facts.st_mode & 077) == 0) return {};
  return fail(ErrorCode::kConfig, "the folder of the socket " + path + " is open to other users",
              "make it mode 0700");
}

}  // namespace

core::Result<OwnedFd> listen_unix(const std::string& name) {
  TROUPE_TRY_ASSIGN(address, unix_address(name));
  if (name[0] != '@') TROUPE_TRY(check_folder(name));
  OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_failure(ErrorCode::kResources, "a Unix socket");
  if (name[0] != '@') ::unlink(name.c_str());
  if (::bind(socket.get(), address.get(), address.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return system_failure(ErrorCode::kResources, "cannot listen at " + name);
  }
  return socket;
}

core::Result<OwnedFd> listen_tcp(const std::string& host, std::uint32_t& port) {
  TROUPE_TRY_ASSIGN(list, resolve(host, port));
  const std::string where = host + ":" + std::to_string(port);
  OwnedFd socket(
      ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, list->ai_protocol));
  if (!socket) return system_failure(ErrorCode::kResources, "a TCP socket");
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return system_failure(ErrorCode::kResources, "cannot listen at " + where);
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size);
  port = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port
                                         : reinterpret_cast<sockaddr_in*>(&own)->sin_port);
  return socket;
}

OwnedFd accept_one(const OwnedFd& listener) {
  return OwnedFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

bool same_user(int unix_socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

core::Result<OwnedFd> connect_unix(const std::string& name, core::TimePoint until) {
  TROUPE_TRY_ASSIGN(address, unix_address(name));
  OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_failure(ErrorCode::kResources, "a Unix socket");
  TROUPE_TRY_ASSIGN(there,
                    finish_connect(std::move(socket), address.get(), address.size, name, until));
  if (same_user(there.get())) return there;
  return fail(ErrorCode::kConfig, name + " is a socket of another user");
}

core::Result<OwnedFd> connect_tcp(const std::string& host,
                                  std::uint32_t port,
                                  core::TimePoint until) {
  TROUPE_TRY_ASSIGN(list, resolve(host, port));
  OwnedFd socket(
      ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, list->ai_protocol));
  if (!socket) return system_failure(ErrorCode::kResources, "a TCP socket");
  return finish_connect(std::move(socket), list->ai_addr, list->ai_addrlen,
                        host + ":" + std::to_string(port), until);
}

core::Result<void> send_all(const OwnedFd& socket,
                            const void* bytes,
                            std::size_t size,
                            Patience patience,
                            const std::string& what) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n =
        ::send(socket.get(), static_cast<const char*>(bytes) + done, size - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (would_block()) {
      const Waited waited = wait_for_bytes(socket, POLLOUT, patience);
      if (waited != Waited::kMoves) return stood_still(waited, patience, what, done, size);
    } else {
      return other_side_closed(what, done, size);
    }
  }
  return {};
}

core::Result<void> receive_all(const OwnedFd& socket,
                               void* bytes,
                               std::size_t size,
                               Patience patience,
                               const std::string& what) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::recv(socket.get(), static_cast<char*>(bytes) + done, size - done, 0);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && would_block()) {
      const Waited waited = wait_for_bytes(socket, POLLIN, patience);
      if (waited != Waited::kMoves) return stood_still(waited, patience, what, done, size);
    } else {
      return other_side_closed(what, done, size);
    }
  }
  return {};
}

ssize_t receive_some(const OwnedFd& socket, void* bytes, std::size_t size, OwnedFd& passed) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{bytes, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (n <= 0) return n;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(at), sizeof fd);
    passed = OwnedFd(fd);
  }
  return n;
}

core::Result<void> receive_with_fd(const OwnedFd& socket,
                                   void* bytes,
                                   std::size_t size,
                                   OwnedFd& passed,
                                   Patience patience,
                                   const std::string& what) {
  const Waited waited = wait_for_bytes(socket, POLLIN, patience);
  if (waited != Waited::kMoves) return stood_still(waited, patience, what, 0, size);
  const ssize_t n = receive_some(socket, bytes, size, passed);
  if (n <= 0) return other_side_closed(what, 0, size);
  const auto got = static_cast<std::size_t>(n);
  return receive_all(socket, static_cast<char*>(bytes) + got, size - got, patience, what);
}

bool send_with_fd(const OwnedFd& socket, const void* bytes, std::size_t size, int passed) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const at = CMSG_FIRSTHDR(&message);
  at->cmsg_level = SOL_SOCKET;
  at->cmsg_type = SCM_RIGHTS;
  at->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(at), &passed, sizeof passed);
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

}  // namespace troupe::net
