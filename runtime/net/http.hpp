// Requests and replies of HTTP/1.1 as values, for handlers and callers that never see Beast. A
// response may be a stream, from which the server takes one piece at a time, as fast as the client
// reads.
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

// The value of the first header of that name, in any case; empty when there is none.
std::string_view find_header(const HttpHeaders& headers, std::string_view name);

// Whether the client of a request is still there: gone once it has closed its end of the connection
// or broken it. Shared by the server and its handler, on the server's strand. A client that sent
// its next request before this one was answered is not watched, and counts as there.
class HttpPresence {
 public:
  bool gone() const noexcept { return gone_; }
  // Called once when the client goes; never after the answer was sent. One hook.
  void on_gone(std::function<void()> hook) { hook_ = std::move(hook); }

  // By the server alone.
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

// A body in pieces, sent in chunks. Owned by its response, used on the server's strand, one call at
// a time: the next piece is asked for when the one before has been handed to the network, so a slow
// client holds its stream back. Destroyed when the client is gone or the server stops.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // The next bytes; nothing at the end. An exception closes the connection.
  virtual async::task<std::optional<std::string>> next() = 0;
};

struct HttpRequest {
  std::string method;
  std::string path;   // without the query
  std::string query;  // after '?'
  HttpHeaders headers;
  std::string body;
  std::shared_ptr<HttpPresence> client;  // null unless the server watches its clients
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;
  std::shared_ptr<HttpStream> stream;  // instead of `body`
};

struct HttpReply {
  int status = 0;
  HttpHeaders headers;
  std::string body;
};

}  // namespace troupe::net
