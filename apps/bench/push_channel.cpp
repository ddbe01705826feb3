#include "apps/bench/push_channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::bench {

core::Result<std::pair<net::OwnedFd, net::OwnedFd>> PushChannel::make_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return core::fail(ErrorCode::kResources,
                      std::string("a pair of sockets: ") + std::strerror(errno));
  }
  return std::pair(net::OwnedFd(ends[0]), net::OwnedFd(ends[1]));
}

core::Result<void> PushChannel::say(const nlohmann::json& message) const {
  const std::string text = message.dump();
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent > 0) return {};
  return core::fail(ErrorCode::kPeerLost, "the other side of the benchmark is gone");
}

bool PushChannel::waiting() const {
  pollfd entry{socket_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

core::Result<nlohmann::json> PushChannel::hear() const {
  std::string text(kPushMessage_bytes, '\0');
  ssize_t size = 0;
  do {
    pollfd entry{socket_.get(), POLLIN, 0};
    const auto most = std::chrono::milliseconds(kPushWait).count();
    if (::poll(&entry, 1, static_cast<int>(most)) == 0)
      return core::fail(ErrorCode::kDeadline, "the other side of the benchmark is silent");
    size = ::recv(socket_.get(), text.data(), text.size(), 0);
  } while (size < 0 && errno == EINTR);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const auto message = nlohmann::json::parse(text, nullptr, false);
  if (!message.is_object())
    return core::fail(ErrorCode::kPeerLost, "the other side of the benchmark is gone");
  if (!message.contains("error")) return message;
  return core::fail(ErrorCode::kPeerLost,
                    "the receiver of the benchmark: error " + message["error"].get<std::string>());
}

}  // namespace troupe::bench
