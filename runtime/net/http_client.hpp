// Posts JSON to http:// or https:// URLs, or gets it from there, and returns the replies. https
// uses the system's CAs and TLS 1.2 or later. Redirects are not followed. Connections are kept for
// the next call; one that the peer has closed meanwhile is replaced, and its call sent again, which
// is no failure. Owned by the caller; all calls on one executor, which outlives the client. Bounds:
// `limit` covers everything except the system's name resolution, which cannot be interrupted; the
// body of a reply has at most kHttpBody_bytes_max bytes; as many connections as calls run at once.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/http.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::net {

class HttpConnections;

class HttpClient {
 public:
  HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  // Returns the reply whatever its status. Errors: kConfig (the URL), kPeerLost (no connection, or
  // it broke), kDeadline, kData (the reply is not HTTP, or too large), kResources (TLS cannot be
  // set up).
  async::task<core::Result<HttpReply>> post_json(std::string url,
                                                 std::string body,
                                                 core::Duration limit,
                                                 HttpHeaders headers);

  // Like post_json, by GET.
  async::task<core::Result<HttpReply>> get_json(std::string url, core::Duration limit);

  std::uint64_t connections_opened() const noexcept;

 private:
  std::shared_ptr<HttpConnections> connections_;
};

}  // namespace troupe::net
