#include "runtime/net/http_connection.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/socket.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <sys/socket.h>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

core::Failure exchange_failure(const HttpCall& call,
                               const char* doing,
                               const boost::system::error_code& code) {
  const bool malformed =
      code.category() == http::make_error_code(http::error::bad_version).category() &&
      code != http::error::end_of_stream && code != http::error::partial_message;
  return call.failure(doing, code, malformed ? ErrorCode::kData : ErrorCode::kPeerLost);
}

http::request<http::string_body> request_of(const HttpCall& call) {
  http::request<http::string_body> request(http::string_to_verb(call.method), call.url.target, 11);
  request.set(http::field::host, call.url.host_header);
  if (request.method() == http::verb::post)
    request.set(http::field::content_type, "application/json");
  request.set(http::field::accept, "application/json");
  request.set(http::field::user_agent, "troupe");
  for (const auto& [name, value] : call.headers)
    request.set(name, value);
  request.body() = call.body;
  request.prepare_payload();
  return request;
}

HttpReply reply_of(http::response<http::string_body> message) {
  HttpReply reply;
  reply.status = static_cast<int>(message.result_int());
  for (const auto& field : message)
    reply.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  reply.body = std::move(message.body());
  return reply;
}

}  // namespace

async::task<core::Result<void>> HttpConnection::open(const HttpCall* call) {
  TROUPE_CO_TRY(co_await connect(&stream_, call));
  // A long request has several segments, and the last one need not wait for an acknowledgement.
  boost::system::error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  co_return core::Result<void>();
}

async::task<core::Result<HttpReply>> HttpConnection::exchange(const HttpCall* call) {
  reusable_ = was_closed_ = false;
  stream_.expires_at(
      std::chrono::time_point_cast<std::chrono::steady_clock::duration>(call->until));
  auto request = request_of(*call);
  const auto [unsent, sent] = co_await http::async_write(stream_, request, kToken);
  beast::flat_buffer buffer(limits::kHttpHeader_bytes_max + 64 * 1024);
  http::response_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(limits::kHttpHeader_bytes_max));
  parser.body_limit(limits::kHttpBody_bytes_max);
  if (unsent) {
    was_closed_ = unsent != beast::error::timeout;
    co_return exchange_failure(*call, "send", unsent);
  }
  const auto [unread, got] = co_await http::async_read(stream_, buffer, parser, kToken);
  if (unread) {
    was_closed_ = !parser.got_some() && got == 0 && unread != beast::error::timeout;
    co_return exchange_failure(*call, "read the reply", unread);
  }
  stream_.expires_never();
  reusable_ = parser.keep_alive() && buffer.size() == 0;
  co_return reply_of(parser.release());
}

bool HttpConnection::spent() {
  char byte;
  const ssize_t got = ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || !would_block();
}

}  // namespace troupe::net
