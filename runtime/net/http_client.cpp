#include "runtime/net/http_client.hpp"

#include "runtime/net/http_connections.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <optional>

namespace troupe::net {

namespace asio = boost::asio;

namespace {

async::task<core::Result<HttpReply>> call_on(std::shared_ptr<HttpConnections> connections,
                                             HttpCall call) {
  for (;;) {
    TROUPE_CO_TRY_ASSIGN(lease, co_await HttpConnections::take(connections, &call));
    auto reply = co_await lease.connection->exchange(&call);
    if (reply) {
      auto executor = co_await asio::this_coro::executor;
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
  TROUPE_CO_TRY_ASSIGN(parsed, parse_url(url));
  const core::TimePoint until = core::SteadyClock().now() + limit;
  HttpCall call{{std::move(parsed), limit, until}, "POST", std::move(body), std::move(headers)};
  auto reply = co_await call_on(connections_, std::move(call));
  co_return reply;
}

async::task<core::Result<HttpReply>> HttpClient::get_json(std::string url, core::Duration limit) {
  TROUPE_CO_TRY_ASSIGN(parsed, parse_url(url));
  const core::TimePoint until = core::SteadyClock().now() + limit;
  HttpCall call{{std::move(parsed), limit, until}, "GET", {}, {}};
  auto reply = co_await call_on(connections_, std::move(call));
  co_return reply;
}

std::uint64_t HttpClient::connections_opened() const noexcept {
  return connections_->opened();
}

core::Result<HttpReply> http_post_json_blocking(const std::string& url,
                                                std::string body,
                                                core::Duration limit,
                                                HttpHeaders headers) {
  asio::io_context context(1);
  HttpClient client;
  std::optional<core::Result<HttpReply>> out;
  auto posted = client.post_json(url, std::move(body), limit, std::move(headers));
  auto done =
      asio::co_spawn(context, async::detail::store(std::move(posted), &out), asio::use_future);
  while (done.wait_for(core::Duration::zero()) != std::future_status::ready)
    context.run_one();
  done.get();
  return std::move(*out);
}

}  // namespace troupe::net
