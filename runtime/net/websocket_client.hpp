// A client's end of one WebSocket connection (RFC 6455): text messages, one call at a time, on the
// executor on which it was connected. https and wss use TLS as the HTTP client does. Pings are
// answered while a call waits. Bounds: each call's deadline; kHttpHeader_bytes_max of the answer to
// the handshake; `message_bytes_max` of a message, beyond which the connection is over.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/http.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::net {

class WebSocketClient {
 public:
  struct Options {
    std::size_t message_bytes_max = 1u << 20;
    HttpHeaders headers;  // of the handshake
  };

  // `url`: ws://, wss://, http:// or https://. Errors: kConfig (the URL), kPeerLost (no
  // connection), kDeadline, kData (the server is no WebSocket server: with its HTTP status),
  // kResources (TLS).
  static async::task<core::Result<std::unique_ptr<WebSocketClient>>> connect(
      std::string url, Options options, async::Deadline deadline);
  virtual ~WebSocketClient() = default;  // drops the connection

  // Errors: kPeerLost (the connection is over; a code that the server gave is named), kDeadline
  // (then it is over, too).
  virtual async::task<core::Result<void>> send(std::string text, async::Deadline deadline) = 0;
  // The next message. Also kData: it is too long, or not text.
  virtual async::task<core::Result<std::string>> receive(async::Deadline deadline) = 0;
  // Says goodbye, and waits for the answer until the deadline.
  virtual async::task<void> close(async::Deadline deadline) = 0;
};

}  // namespace troupe::net
