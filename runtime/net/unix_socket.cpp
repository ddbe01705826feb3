// System calls and their errors in words.
#include "runtime/net/unix_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

namespace troupe::net {
namespace {

using core::ErrorCode;
using core::fail;

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
    return fail(ErrorCode::kConfig, "the name of the socket '" + name + "' has " +
                                        std::to_string(name.size()) +
                                        " characters; the system takes 1 to " +
                                        std::to_string(sizeof result.address.sun_path - 1) +
                                        "; choose a shorter folder");
  }
  std::memcpy(result.address.sun_path, name.data(), name.size());
  if (name[0] == '@') result.address.sun_path[0] = '\0';
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() +
                                       (name[0] == '@' ? 0 : 1));
  return result;
}

core::Result<void> check_folder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1) + ".";
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) {
    return system_failure(ErrorCode::kConfig, "the folder of the socket " + path);
  }
  if (facts.st_uid == ::geteuid() && (facts.st_mode & 077) == 0) return {};
  return fail(ErrorCode::kConfig,
              "the folder of the socket " + path + " is open to other users; make it mode 0700");
}

}  // namespace

void OwnedFd::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

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

core::Result<OwnedFd> connect_unix(const std::string& name, core::TimePoint until) {
  TROUPE_TRY_ASSIGN(address, unix_address(name));
  OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_failure(ErrorCode::kResources, "a Unix socket");
  int status = 0;
  // A listener whose queue is full says EAGAIN and must be asked again.
  while ((status = ::connect(socket.get(), address.get(), address.size)) != 0 &&
         (errno == EINTR || errno == EAGAIN) && std::chrono::steady_clock::now() < until) {
    ::poll(nullptr, 0, 1);
  }
  if (status != 0) return system_failure(ErrorCode::kPeerLost, "cannot reach " + name);
  if (!same_user(socket.get())) {
    return fail(ErrorCode::kConfig, name + " is a socket of another user");
  }
  return socket;
}

bool same_user(int unix_socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

}  // namespace troupe::net
