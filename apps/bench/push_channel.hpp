// Carries JSON messages between `troupe bench push` and its receiver over a pair of sockets. The
// receiver is a second process of this program, or a thread of the same one with --path local. One
// thread uses each end. Bounds: kPushMessage_bytes for a message, kPushWait for an answer.
#pragma once

#include "runtime/net/socket.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

namespace troupe::bench {

inline constexpr std::size_t kPushMessage_bytes = 16384;
inline constexpr std::chrono::seconds kPushWait{600};

class PushChannel {
 public:
  explicit PushChannel(net::OwnedFd socket) : socket_(std::move(socket)) {}
  // Makes the two connected ends. Error: kResources.
  static core::Result<std::pair<net::OwnedFd, net::OwnedFd>> make_sockets();

  core::Result<void> say(const nlohmann::json& message) const;
  // Waits for the next message. Errors: kDeadline; kPeerLost when the other end is gone or has sent
  // {"error": TEXT}, with TEXT in the message.
  core::Result<nlohmann::json> hear() const;
  bool waiting() const;  // `hear` would not block: a message is there, or the other end is gone

 private:
  net::OwnedFd socket_;
};

}  // namespace troupe::bench
