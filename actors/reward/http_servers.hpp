// HttpServers posts requests to one of several servers that answer alike, and moves those that fail
// there to another. Coroutines on the owner's strand; ServerBoard decides. Bounds:
// kRewardRequests_max requests of callers in flight, the others wait in order; each is at one
// server, and at a second one when the first is silent or the second is being probed; two deadlines
// for one request.
#pragma once

#include "actors/protocol/call_gate.hpp"
#include "actors/protocol/role_shell.hpp"
#include "actors/reward/limits.hpp"
#include "actors/reward/server_board.hpp"
#include "runtime/net/http_client.hpp"
#include "runtime/wire/role_report.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::reward {

// The beginning of a reply for a message, in printable ASCII.
std::string printed(const std::string& body);

struct HttpServersOptions {
  std::string what = "reward server";  // in messages, before the URL
  net::HttpHeaders headers{};          // of every request
  // A text that no reply may put into messages: `shown` blots it out.
  std::string secret{};
  // Why a reply with status 2xx says nothing but that the server is sick; "" when it is an answer.
  // Such a server is away, as one that answers 503. May be empty.
  std::function<std::string(const net::HttpReply&)> sick{};
};

class HttpServers {
 public:
  struct Reply {
    std::string url;
    net::HttpReply http;
  };

  explicit HttpServers(std::vector<std::string> urls, HttpServersOptions options = {})
      : urls_(std::move(urls)), options_(std::move(options)), board_(urls_.size()) {}
  HttpServers(const HttpServers&) = delete;
  HttpServers& operator=(const HttpServers&) = delete;

  // The servers' requests are children of the context's scope.
  void begin(const RoleContext& context);

  // The first reply of a server that is not away, whatever its status. Errors:
  // kPeerLost with the causes, when each server is away; kConfig, kData or kResources when a
  // request cannot be made or the reply is not HTTP.
  async::task<core::Result<Reply>> post(std::string body, core::Duration deadline);

  // The beginning of a reply's body for a message, in printable ASCII, without the secret.
  std::string shown(std::string body) const;

  // "requests", "moved", "in_flight", "connections" (made so far), "servers" and "servers_away".
  wire::Amounts amounts() const;
  const ServerBoard& board() const noexcept { return board_; }

 private:
  struct Request;  // one caller's, with its attempts
  async::task<core::Result<Reply>> post_inside(std::shared_ptr<Request> request);
  void send(const std::shared_ptr<Request>& request, ServerBoard::Place place, bool copy);
  async::task<void> attempt(std::shared_ptr<Request> request, ServerBoard::Place place);
  void take(Request& request,
            ServerBoard::Place place,
            core::TimePoint sent,
            core::Result<net::HttpReply> reply);
  bool leave(Request& request);
  core::Failure nobody(const Request& request) const;
  // Notes a Retry-After in seconds; ignores other values.
  void keep_silence(ServerBoard::Place place, const net::HttpReply& reply);

  const std::vector<std::string> urls_;
  const HttpServersOptions options_;
  ServerBoard board_;
  std::vector<std::string> silences_;  // by server: why it is left alone
  net::HttpClient client_;
  RoleContext context_;
  std::optional<async::Notifier> room_;  // an attempt has ended
  CallGate gate_{limits::kRewardRequests_max};
  std::uint64_t requests_ = 0, moved_ = 0;
};

}  // namespace troupe::actors::reward
