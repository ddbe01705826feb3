#include "runtime/collective/peer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace troupe::collective {

void Peer::hear() {
  char bytes[512];
  while (!closed_) {
    const ssize_t n = ::recv(control_.get(), bytes, sizeof bytes, 0);
    if (n > 0) {
      heard_.append(bytes, static_cast<std::size_t>(n));
      understand();
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      closed_ = true;
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

void Peer::understand() {
  while (!heard_.empty()) {
    if (heard_[0] != kFailed) {
      if (heard_[0] == kDone) done_ = true;
      if (heard_[0] == kNoLink) without_link_ = true;
      heard_.erase(0, 1);
      continue;
    }
    Farewell farewell;
    if (heard_.size() < 1 + sizeof farewell) return;
    std::memcpy(&farewell, heard_.data() + 1, sizeof farewell);
    const std::size_t text = std::min(farewell.text_bytes, kFarewellText_bytes_max);
    if (heard_.size() < 1 + sizeof farewell + text) return;
    const bool known = farewell.code < static_cast<std::uint32_t>(core::kErrorCodes);
    failure_ = core::Error{
        known ? static_cast<core::ErrorCode>(farewell.code) : core::ErrorCode::kPeerLost,
        heard_.substr(1 + sizeof farewell, text)};
    heard_.erase(0, 1 + sizeof farewell + text);
  }
}

void Peer::say_no_link() {
  const char byte = kNoLink;
  (void)!::send(control_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Peer::say_goodbye(const core::Error* error) {
  std::string bytes(1, error == nullptr ? kDone : kFailed);
  if (error != nullptr) {
    Farewell farewell;
    farewell.code = static_cast<std::uint32_t>(error->code);
    const std::string text = error->message.substr(0, kFarewellText_bytes_max);
    farewell.text_bytes = static_cast<std::uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&farewell), sizeof farewell);
    bytes += text;
  }
  (void)!::send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Unread bytes would turn the end of a TCP connection into a reset.
  char unread[512];
  while (::recv(control_.get(), unread, sizeof unread, MSG_DONTWAIT) > 0) {
  }
}

void Peer::break_off() {
  ::shutdown(control_.get(), SHUT_WR);
}

}  // namespace troupe::collective
