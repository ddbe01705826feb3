// What the clients of HTTP and WebSocket have in common: the connection to a URL's host, its
// deadline, and TLS with the system's CAs. Internal to this room; one coroutine at a time.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/url.hpp"

#include <boost/asio/ssl.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include <string>

namespace troupe::net {

struct Outbound {
  Url url;
  core::Duration limit;   // for messages
  core::TimePoint until;  // of the steady clock

  std::string where() const;  // the URL
  // "WHERE: cannot DOING: ...". kDeadline when the time is over, else `otherwise`.
  core::Failure failure(const char* doing,
                        const boost::system::error_code& code,
                        core::ErrorCode otherwise = core::ErrorCode::kPeerLost) const;
};

using PlainClientStream = boost::beast::tcp_stream;
using TlsClientStream = boost::beast::ssl_stream<PlainClientStream>;

// Resolves the host and connects, until `call->until`. Errors: those of Outbound::failure.
async::task<core::Result<void>> connect_stream(PlainClientStream* stream, const Outbound* call);

// The settings of all clients: TLS 1.2 or later, certificates checked. Error: kResources.
core::Result<boost::asio::ssl::context*> client_tls();

// Connects and agrees on TLS with the URL's host.
async::task<core::Result<void>> connect_tls(TlsClientStream* stream, const Outbound* call);

}  // namespace troupe::net
