// What the clients of HTTP and WebSocket have in common: the connection to a URL's host, its
// deadline, and TLS with the system's CAs. Internal to this room; one coroutine at a time.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/any_stream.hpp"
#include "runtime/net/url.hpp"

#include <boost/asio/ssl/context.hpp>

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

// What an AnyStream to a URL takes: null without TLS, else the settings of all clients (TLS 1.2 or
// later, certificates checked). Error: kResources.
core::Result<boost::asio::ssl::context*> client_tls(const Url& url);

// Resolves the host, connects and, if the stream has TLS, agrees on it with the URL's host, until
// `call->until`. Errors: those of Outbound::failure.
async::task<core::Result<void>> connect(AnyStream* stream, const Outbound* call);

}  // namespace troupe::net
