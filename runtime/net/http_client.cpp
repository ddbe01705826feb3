#include "runtime/net/http_client.hpp"

#include "runtime/net/http_connections.hpp"

namespace troupe::net {

namespace {

async::task<core::Result<HttpReply>> call_on(std::shared_ptr<HttpConnections> connections,
                                             const char* method,
                                             std::string url,
                                             std::string body,
                                             core::Duration limit,
                                             HttpHeaders headers) {
  TROUPE_CO_TRY_ASSIGN(parsed, parse_url(url));
  const core::TimePoint until = core::SteadyClock().now() + limit;
  const HttpCall call{
      {std::move(parsed), limit, until}, method, std::move(body), std::move(headers)};
  for (;;) {
    TROUPE_CO_TRY_ASSIGN(lease, co_await HttpConnections::take(connections, &call));
    auto reply = co_await lease.connection->exchange(&call);
    if (reply) {
      auto executor = co_await boost::asio::this_coro::executor;
      connections->give(call, std::move(executor), std::move(lease));
      co_return reply;
    }
    const bool used_before = lease.young == nullptr;
    if (!used_before || !lease.connection->was_closed()) co_return reply;
  }
}

}  // namespace

HttpClient::HttpClient() : connections_(std::make_shared<HttpConnections>()) {}
HttpClient::~HttpClient() = default;

async::task<core::Result<HttpReply>> HttpClient::post_json(std::string url,
                                                           std::string body,
                                                           core::Duration limit,
                                                           HttpHeaders headers) {
  return call_on(connections_, "POST", std::move(url), std::move(body), limit, std::move(headers));
}

async::task<core::Result<HttpReply>> HttpClient::get_json(std::string url, core::Duration limit) {
  return call_on(connections_, "GET", std::move(url), {}, limit, {});
}

std::uint64_t HttpClient::connections_opened() const noexcept {
  return connections_->opened();
}

}  // namespace troupe::net
