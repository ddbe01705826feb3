// Carries JSON messages between `troupe bench push` and its receiver over a pair of sockets. The
// receiver is a second process of this program, or a thread when the channel within one process is
// measured. Each end is used by one thread. Bounds: kPushMessage_bytes a message, kPushWait for an
// answer.
#pragma once

#include "runtime/net/socket.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

namespace troupe::app {

inline constexpr std::size_t kPushMessage_bytes = 16384;
inline constexpr std::chrono::seconds kPushWait{600};

class PushChannel {
 public:
  explicit PushChannel(net::OwnedFd socket) : socket_(std::move(socket)) {}
  // Both ends. Error: kResources.
  static core::Result<std::pair<net::OwnedFd, net::OwnedFd>> make_sockets();

  core::Result<void> say(const nlohmann::json& message) const;
  // The next message. Errors: kPeerLost, kDeadline; that of {"error": TEXT} is its text.
  core::Result<nlohmann::json> hear() const;
  bool waiting() const;  // `hear` would not block: a message or the end is there

 private:
  net::OwnedFd socket_;
};

}  // namespace troupe::app
