// A small HTTP/1.1 server: keep-alive, one handler coroutine for all requests. Owned by a command
// or a node; works on a strand of the io threads, which outlive it; its own functions are called
// from other threads. Bounds: limits kHttp*; a header has kHttpHeader, a body kHttpBody to arrive,
// a piece of a stream kHttpBody to be taken. A connection beyond the bound gets 503 and is closed;
// a body beyond its bound is refused (413) and not read. A folded header line (400) or a transfer
// coding other than chunked (501) ends the connection, so that a proxy in front cannot parse the
// requests differently.
//
// Refuses a request whose Host (or Origin, if present) is neither an acceptable address nor an
// allowed name, so that a web page cannot reach the server through a visitor's browser.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/limits.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  // Host names beside `localhost` and addresses: loopback ones when bound to loopback, else any.
  std::vector<std::string> allowed_hosts;
  std::uint64_t body_bytes_max = limits::kHttpBody_bytes_max;
  std::uint64_t connections_max = limits::kHttpConnections_max;
  core::Duration header_limit = limits::kHttpHeader;
  core::Duration body_limit = limits::kHttpBody;
  core::Duration idle_limit = limits::kHttpIdle;
  bool watch_clients = false;  // tell handlers when their client goes (HttpRequest::client)
  // Makes the response for errors of the server itself; a line of text when null.
  std::function<HttpResponse(int status, const std::string& why)> complaint;
};

class HttpServer {
 public:
  // Runs on the server's strand; an exception becomes a 500.
  using Handler = std::function<async::task<HttpResponse>(HttpRequest request)>;

  // Errors: kConfig (the address), kResources (the port is taken).
  static core::Result<std::unique_ptr<HttpServer>> open(async::IoThreads& io,
                                                        HttpServerOptions options,
                                                        Handler handler);
  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const noexcept;

  // Closes the port, cancels the handlers and waits for them. Idempotent; no io thread.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// True when a Host header (or the host of an Origin) is acceptable for a server bound to loopback
// or not. Pure; here for its tests.
bool host_allowed(std::string_view header,
                  bool bound_to_loopback,
                  const std::vector<std::string>& allowed);

}  // namespace troupe::net
