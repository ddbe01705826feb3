#include "runtime/net/http_client.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/outbound.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <optional>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using core::ErrorCode;

namespace {

struct Call : Outbound {
  http::verb verb;
  std::string body;
  HttpHeaders headers;

  core::Failure failure(const char* doing, const boost::system::error_code& code) const {
    const bool malformed =
        code.category() == http::make_error_code(http::error::bad_version).category() &&
        code != http::error::end_of_stream && code != http::error::partial_message;
    return Outbound::failure(doing, code, malformed ? ErrorCode::kData : ErrorCode::kPeerLost);
  }
};

template <class Stream>
async::task<core::Result<HttpReply>> exchange(Stream* stream, Call* call) {
  http::request<http::string_body> request(call->verb, call->url.target, 11);
  request.set(http::field::host, call->url.host_header);
  if (call->verb == http::verb::post) request.set(http::field::content_type, "application/json");
  request.set(http::field::accept, "application/json");
  request.set(http::field::user_agent, "troupe");
  request.set(http::field::connection, "close");
  for (const auto& [name, value] : call->headers)
    request.set(name, value);
  request.body() = std::move(call->body);
  request.prepare_payload();
  const auto [unsent, sent] = co_await http::async_write(*stream, request, kToken);
  if (unsent) co_return call->failure("send", unsent);

  beast::flat_buffer buffer(limits::kHttpHeader_bytes_max + 64 * 1024);
  http::response_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(limits::kHttpHeader_bytes_max));
  parser.body_limit(limits::kHttpBody_bytes_max);
  const auto [unread, got] = co_await http::async_read(*stream, buffer, parser, kToken);
  if (unread) co_return call->failure("read the reply", unread);
  auto message = parser.release();
  HttpReply reply;
  reply.status = static_cast<int>(message.result_int());
  for (const auto& field : message) {
    reply.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  reply.body = std::move(message.body());
  co_return reply;
}

async::task<core::Result<HttpReply>> exchange_plain(Call* call) {
  PlainClientStream stream(co_await asio::this_coro::executor);
  TROUPE_CO_TRY(co_await connect_stream(&stream, call));
  auto reply = co_await exchange(&stream, call);
  co_return reply;
}

async::task<core::Result<HttpReply>> exchange_tls(Call* call) {
  TROUPE_CO_TRY_ASSIGN(tls, client_tls());
  TlsClientStream stream(co_await asio::this_coro::executor, *tls);
  TROUPE_CO_TRY(co_await connect_tls(&stream, call));
  auto reply = co_await exchange(&stream, call);
  co_return reply;
}

async::task<core::Result<HttpReply>> exchange_any(Call* call) {
  return call->url.tls ? exchange_tls(call) : exchange_plain(call);
}

}  // namespace

async::task<core::Result<HttpReply>> http_post_json(std::string url,
                                                    std::string body,
                                                    core::Duration limit,
                                                    HttpHeaders headers) {
  TROUPE_CO_TRY_ASSIGN(parsed, parse_url(url));
  const core::TimePoint until = core::SteadyClock().now() + limit;
  Call call{
      {std::move(parsed), limit, until}, http::verb::post, std::move(body), std::move(headers)};
  auto reply = co_await exchange_any(&call);
  co_return reply;
}

async::task<core::Result<HttpReply>> http_get_json(std::string url, core::Duration limit) {
  TROUPE_CO_TRY_ASSIGN(parsed, parse_url(url));
  const core::TimePoint until = core::SteadyClock().now() + limit;
  Call call{{std::move(parsed), limit, until}, http::verb::get, {}, {}};
  auto reply = co_await exchange_any(&call);
  co_return reply;
}

core::Result<HttpReply> http_post_json_blocking(const std::string& url,
                                                std::string body,
                                                core::Duration limit,
                                                HttpHeaders headers) {
  asio::io_context context(1);
  std::optional<core::Result<HttpReply>> out;
  auto posted = http_post_json(url, std::move(body), limit, std::move(headers));
  auto done =
      asio::co_spawn(context, async::detail::store(std::move(posted), &out), asio::use_future);
  context.run();
  done.get();
  return std::move(*out);
}

}  // namespace troupe::net
