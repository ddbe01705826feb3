#include "runtime/net/http_connection.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/limits.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <sys/socket.h>

#include <cerrno>
#include <type_traits>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using core::ErrorCode;

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

template <class Stream>
class Connection final : public HttpConnection {
 public:
  static constexpr bool kTls = std::is_same_v<Stream, TlsClientStream>;

  template <class... Context>
  explicit Connection(async::Executor executor, Context&... context)
      : stream_(std::move(executor), context...) {}

  async::task<core::Result<void>> open(const HttpCall* call) override {
    if constexpr (kTls) {
      TROUPE_CO_TRY(co_await connect_tls(&stream_, call));
    } else {
      TROUPE_CO_TRY(co_await connect_stream(&stream_, call));
    }
    // A long request has several segments, and the last one need not wait for an acknowledgement.
    boost::system::error_code ignored;
    beast::get_lowest_layer(stream_).socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    co_return core::Result<void>();
  }

  async::task<core::Result<HttpReply>> exchange(const HttpCall* call) override {
    reusable_ = was_closed_ = false;
    auto& socket = beast::get_lowest_layer(stream_);
    socket.expires_at(
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
    socket.expires_never();
    reusable_ = parser.keep_alive() && buffer.size() == 0;
    co_return reply_of(parser.release());
  }

 private:
  int descriptor() const override {
    return const_cast<PlainClientStream&>(beast::get_lowest_layer(stream_)).socket().native_handle();
  }

  Stream stream_;
};

}  // namespace

bool HttpConnection::spent() const {
  char byte;
  const ssize_t got = ::recv(descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return !(got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

std::unique_ptr<HttpConnection> make_http_connection(async::Executor executor, bool tls) {
  if (!tls) return std::make_unique<Connection<PlainClientStream>>(std::move(executor));
  const auto context = client_tls();
  if (!context) return nullptr;
  return std::make_unique<Connection<TlsClientStream>>(std::move(executor), **context);
}

}  // namespace troupe::net
