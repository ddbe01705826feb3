// HTTP/1.1 requests, responses and replies as plain values, so that handlers and callers need no
// Boost.Beast. A response may be a stream, from which the server takes one piece at a time, as fast
// as the client reads.
#pragma once

#include "runtime/async/task.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name (letter case ignored); empty if there is none.
std::string_view find_header(const HttpHeaders& headers, std::string_view name);

// Tells a handler whether the client of its request has disconnected: closed its end of the
// connection or broken it. Shared by the server and the handler, on the server's strand. A client
// that sends its next request before it has this answer is not watched, and counts as connected.
class HttpPresence {
 public:
  bool gone() const noexcept { return gone_; }
  // Sets the one hook, which is called once when the client disconnects, but not after the answer
  // was sent.
  void on_gone(std::function<void()> hook) { hook_ = std::move(hook); }

  // Only the server calls these: when the client has disconnected, and when the request is over.
  void leave() {
    if (std::exchange(gone_, true) || over_) return;
    if (hook_) std::exchange(hook_, nullptr)();
  }
  void end() {
    over_ = true;
    hook_ = nullptr;
  }
  bool over() const noexcept { return over_; }

 private:
  bool gone_ = false, over_ = false;
  std::function<void()> hook_;
};

// A response body that is produced in pieces. The server calls `next` on its strand, once it has
// handed the previous piece to the network, so a slow client slows its stream down. Owned by the
// response; destroyed when the stream ends, the client disconnects or the server stops.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // The next bytes; nullopt at the end. An exception closes the connection.
  virtual async::task<std::optional<std::string>> next() = 0;
};

struct HttpRequest {
  std::string method;
  std::string path;   // without the query
  std::string query;  // after '?'
  HttpHeaders headers;
  std::string body;
  std::shared_ptr<HttpPresence> client;  // null unless HttpServerOptions::watch_clients
};

// What a handler of the server returns.
struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;
  std::shared_ptr<HttpStream> stream;  // instead of `body`
};

// What the client of http_client.hpp received.
struct HttpReply {
  int status = 0;
  HttpHeaders headers;
  std::string body;
};

}  // namespace troupe::net
