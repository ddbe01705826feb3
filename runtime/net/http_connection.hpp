// One connection of the HTTP client, plain or with TLS, that carries one call after another.
// Internal to this room; one coroutine at a time.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/outbound.hpp"

#include <memory>
#include <string>

namespace troupe::net {

struct HttpCall : Outbound {
  const char* method;  // "GET" or "POST"
  std::string body;    // JSON
  HttpHeaders headers;
};

class HttpConnection {
 public:
  virtual ~HttpConnection() = default;

  // Connects to the URL's host. Errors: those of Outbound::failure, kResources.
  virtual async::task<core::Result<void>> open(const HttpCall* call) = 0;

  // Sends the call and reads its reply.
  virtual async::task<core::Result<HttpReply>> exchange(const HttpCall* call) = 0;

  // After an exchange: another may follow on this connection.
  bool reusable() const noexcept { return reusable_; }
  // After a failed exchange: the peer closed before it sent a byte of a reply, as it does with a
  // connection that it has given up meanwhile.
  bool was_closed() const noexcept { return was_closed_; }
  // The peer has closed or written since the last exchange, so nothing can follow.
  bool spent() const;

 protected:
  virtual int descriptor() const = 0;
  bool reusable_ = false, was_closed_ = false;
};

// A connection for calls to this URL's host, on this executor; not yet open.
std::unique_ptr<HttpConnection> make_http_connection(async::Executor executor, bool tls);

}  // namespace troupe::net
