// A small HTTP/1.1 server with keep-alive; one handler coroutine function serves all requests.
// Works on a strand of the io threads, which outlive it; call its functions from other threads.
// Bounds: HttpServerOptions and limits kHttp*. header_limit and body_limit bound the time in which
// a header and a body must arrive; body_limit also that in which the client must take a response or
// a piece of a stream. Beyond connections_max those that are silent give way (HttpCallers); if none
// is, a further connection gets 503 and is closed. Where open files run short, further connections
// wait in the system's queue. A body beyond body_bytes_max gets 413. A folded header line (400) or
// a transfer coding other than chunked (501) ends the connection, so that a proxy in front cannot
// parse the requests differently.
//
// Refuses a request whose Host (or Origin, if present) is neither an acceptable address nor an
// allowed name, so that a web page cannot reach the server through its visitor's browser.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/https_context.hpp"
#include "runtime/net/limits.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0 = a free one
  // Host names to accept in addition to `localhost` and addresses. If the server is bound to
  // loopback, it accepts loopback addresses only, otherwise any address.
  std::vector<std::string> allowed_hosts;
  std::shared_ptr<HttpsContext> tls;  // none: plain HTTP; else HTTPS and nothing else
  std::uint64_t body_bytes_max = limits::kHttpBody_bytes_max;
  std::uint64_t connections_max = limits::kHttpConnections_max;
  core::Duration header_limit = limits::kHttpHeader;
  core::Duration body_limit = limits::kHttpBody;
  core::Duration idle_limit = limits::kHttpIdle;
  bool watch_clients = false;  // tell handlers when their client disconnects (HttpRequest::client)
  // Makes the response for errors of the server itself; if null, that is one line of text. `path`
  // is empty if the request's was not read.
  std::function<HttpResponse(int status, const std::string& why, const std::string& path)>
      complaint;
};

class HttpServer {
 public:
  // Runs on the server's strand; an exception becomes the status 500.
  using Handler = std::function<async::task<HttpResponse>(HttpRequest request)>;

  // Errors: kConfig (the address), kResources (the port is taken).
  static core::Result<std::unique_ptr<HttpServer>> open(async::IoThreads& io,
                                                        HttpServerOptions options,
                                                        Handler handler);
  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const noexcept;

  // Closes the port, cancels the handlers and waits for them. Idempotent. Not on an io thread.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::net
