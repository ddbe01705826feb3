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
  // For calls to one URL's host; not yet open. `tls`: client_tls(); null: a plain connection.
  HttpConnection(const async::Executor& executor, boost::asio::ssl::context* tls)
      : stream_(executor, tls) {}

  // Connects to the URL's host. Errors: those of Outbound::failure, kResources.
  async::task<core::Result<void>> open(const HttpCall* call);

  // Sends the call and reads its reply.
  async::task<core::Result<HttpReply>> exchange(const HttpCall* call);

  // After an exchange: another may follow on this connection.
  bool reusable() const noexcept { return reusable_; }
  // After a failed exchange: the peer closed before it sent a byte of a reply, as it does with a
  // connection that it has given up meanwhile.
  bool was_closed() const noexcept { return was_closed_; }
  // The peer has closed or written since the last exchange, so nothing can follow.
  bool spent();

 private:
  AnyStream stream_;
  bool reusable_ = false, was_closed_ = false;
};

}  // namespace troupe::net
