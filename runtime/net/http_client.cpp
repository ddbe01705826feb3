#include "runtime/net/http_client.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/url.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include <memory>
#include <optional>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using core::ErrorCode;

namespace {

struct Call {
  Url url;
  std::string body;
  HttpHeaders headers;
  core::Duration limit;
  core::TimePoint until;

  core::Failure failure(const char* doing, const boost::system::error_code& code) const {
    const std::string where = (url.tls ? "https://" : "http://") + url.host_header + url.target;
    if (code == beast::error::timeout || code == asio::error::operation_aborted) {
      const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
      return core::fail(ErrorCode::kDeadline,
                        where + ": no reply within " + std::to_string(limit_ms) + " ms");
    }
    const bool malformed =
        code.category() == http::make_error_code(http::error::bad_version).category() &&
        code != http::error::end_of_stream && code != http::error::partial_message;
    return core::fail(malformed ? ErrorCode::kData : ErrorCode::kPeerLost,
                      where + ": cannot " + doing + ": " + code.message());
  }
};

async::task<core::Result<void>> connect(beast::tcp_stream* stream, const Call* call) {
  stream->expires_at(
      std::chrono::time_point_cast<std::chrono::steady_clock::duration>(call->until));
  boost::system::error_code code;
  const auto address = asio::ip::make_address(call->url.host, code);
  if (!code) {
    const tcp::endpoint endpoint(address, call->url.port);
    const auto [failed] = co_await stream->async_connect(endpoint, kToken);
    if (failed) co_return call->failure("connect", failed);
    co_return core::Result<void>();
  }
  auto executor = co_await asio::this_coro::executor;
  auto resolver = std::make_shared<tcp::resolver>(executor);
  async::SteadyTimers timers;
  std::function<void()> cut = [resolver] { resolver->cancel(); };
  async::Timer timer = timers.arm(executor, call->until, std::move(cut));
  const std::string port = std::to_string(call->url.port);
  auto [unresolved, found] = co_await resolver->async_resolve(call->url.host, port, kToken);
  timer.disarm();
  if (unresolved) co_return call->failure("resolve the host", unresolved);
  const auto [failed, endpoint] = co_await stream->async_connect(found, kToken);
  if (failed) co_return call->failure("connect", failed);
  co_return core::Result<void>();
}

template <class Stream>
async::task<core::Result<HttpReply>> exchange(Stream* stream, Call* call) {
  http::request<http::string_body> request(http::verb::post, call->url.target, 11);
  request.set(http::field::host, call->url.host_header);
  request.set(http::field::content_type, "application/json");
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
  beast::tcp_stream stream(co_await asio::this_coro::executor);
  TROUPE_CO_TRY(co_await connect(&stream, call));
  auto reply = co_await exchange(&stream, call);
  co_return reply;
}

// The settings of all TLS connections, made once: reading the system's CAs takes a while.
struct ClientTls {
  ClientTls() {
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    context.set_default_verify_paths(failed);
    if (!failed) context.set_verify_mode(asio::ssl::verify_peer, failed);
  }
  asio::ssl::context context{asio::ssl::context::tls_client};
  boost::system::error_code failed;
};

async::task<core::Result<HttpReply>> exchange_tls(Call* call) {
  static ClientTls tls;
  boost::system::error_code code = tls.failed;
  if (code) co_return core::fail(ErrorCode::kResources, "cannot set TLS up: " + code.message());
  beast::ssl_stream<beast::tcp_stream> stream(co_await asio::this_coro::executor, tls.context);
  stream.set_verify_callback(asio::ssl::host_name_verification(call->url.host), code);
  if (code) co_return core::fail(ErrorCode::kResources, "cannot set TLS up: " + code.message());
  SSL_set_tlsext_host_name(stream.native_handle(), call->url.host.c_str());
  TROUPE_CO_TRY(co_await connect(&beast::get_lowest_layer(stream), call));
  const auto [unshaken] = co_await stream.async_handshake(asio::ssl::stream_base::client, kToken);
  if (unshaken) co_return call->failure("agree on TLS", unshaken);
  auto reply = co_await exchange(&stream, call);
  co_return reply;
}

}  // namespace

async::task<core::Result<HttpReply>> http_post_json(std::string url,
                                                    std::string body,
                                                    core::Duration limit,
                                                    HttpHeaders headers) {
  TROUPE_CO_TRY_ASSIGN(parsed, parse_url(url));
  const core::TimePoint until = core::SteadyClock().now() + limit;
  Call call{std::move(parsed), std::move(body), std::move(headers), limit, until};
  auto exchanged = call.url.tls ? exchange_tls(&call) : exchange_plain(&call);
  auto reply = co_await std::move(exchanged);
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
