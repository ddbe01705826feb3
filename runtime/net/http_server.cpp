// One coroutine a connection over Beast's stream, whose own timer limits each step.
#include "runtime/net/http_server.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/net/listener.hpp"
#include "runtime/net/strand_scope.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <optional>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace limits = core::limits;
using asio::ip::tcp;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::size_t kFirstRead_bytes = 4096;

using Parser = http::request_parser<http::string_body>;
using Message = http::response<http::string_body>;

Message plain(http::status status, const std::string& why, unsigned version) {
  Message message(status, version);
  message.set(http::field::content_type, "text/plain; charset=utf-8");
  message.body() = why + "\n";
  message.keep_alive(false);
  message.prepare_payload();
  return message;
}

// What a request gets that could not be read; nothing for a connection that ended or was too slow.
std::optional<Message> complaint(const boost::system::error_code& code) {
  if (code == http::error::body_limit) {
    return plain(http::status::payload_too_large, "the body is too large", 11);
  }
  if (code == http::error::header_limit || code == http::error::buffer_overflow) {
    return plain(http::status::request_header_fields_too_large, "the header is too large", 11);
  }
  if (code == http::error::end_of_stream || code == http::error::partial_message ||
      code.category() != http::make_error_code(http::error::end_of_stream).category()) {
    return std::nullopt;
  }
  return plain(http::status::bad_request, "this is no HTTP request: " + code.message(), 11);
}

HttpRequest request_of(http::request<http::string_body>&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != target.npos) request.query = target.substr(question + 1);
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

Message message_of(HttpResponse response, bool keep_alive, bool head, unsigned version) {
  Message message(static_cast<http::status>(response.status), version);
  message.set(http::field::content_type, response.content_type);
  message.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers)
    message.set(name, value);
  message.keep_alive(keep_alive);
  message.content_length(response.body.size());
  if (!head) message.body() = std::move(response.body);
  return message;
}

std::string_view host_part(std::string_view authority) {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return end == authority.npos ? std::string_view() : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

}  // namespace

std::string_view find_header(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (beast::iequals(key, name)) return value;
  }
  return {};
}

bool host_allowed(std::string_view header,
                  bool bound_to_loopback,
                  const std::vector<std::string>& allowed) {
  const std::string_view host = host_part(header);
  if (host.empty()) return false;
  if (beast::iequals(host, "localhost")) return true;
  boost::system::error_code code;
  const auto address = asio::ip::make_address(host, code);
  if (!code && (address.is_loopback() || !bound_to_loopback)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [host](const std::string& one) { return beast::iequals(host, one); });
}

struct HttpServer::Impl {
  Impl(async::IoThreads& io, HttpServerOptions given, Handler called)
      : options(std::move(given)), handler(std::move(called)), work(io) {}

  static async::task<void> accept_all(Impl* self);
  static async::task<void> converse(Impl* self, std::shared_ptr<beast::tcp_stream> stream);
  static async::task<bool> one_request(Impl* self,
                                       beast::tcp_stream* stream,
                                       beast::flat_buffer* buffer,
                                       bool first);
  static async::task<HttpResponse> respond(Impl* self, HttpRequest request);
  std::optional<Message> refusal(const http::request<http::string_body>& message) const;

  const HttpServerOptions options;
  const Handler handler;
  async::SteadyTimers timers;
  StrandScope work;
  std::optional<tcp::acceptor> acceptor;
  std::size_t connections = 0;
  bool loopback = true;
  std::uint16_t port = 0;
  bool stopped = false;
};

async::task<void> HttpServer::Impl::accept_all(Impl* self) {
  for (;;) {
    tcp::socket socket(self->work.executor());
    const auto [code] = co_await self->acceptor->async_accept(socket, kToken);
    if (self->work.scope().cancelled()) co_return;
    if (code == asio::error::connection_aborted) continue;
    if (code) {
      co_await async::sleep_for(self->timers, kAcceptPause);
      continue;
    }
    if (self->connections >= self->options.connections_max) continue;  // closed again
    ++self->connections;
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    auto stream = std::make_shared<beast::tcp_stream>(std::move(socket));
    self->work.scope().spawn("", converse(self, std::move(stream)));
  }
}

async::task<void> HttpServer::Impl::converse(Impl* self,
                                             std::shared_ptr<beast::tcp_stream> stream) {
  struct Counted {
    std::size_t& count;
    ~Counted() { --count; }
  };
  const Counted counted{self->connections};
  beast::flat_buffer buffer(limits::kHttpHeader_bytes_max + 64 * 1024);
  bool first = true;
  while (co_await one_request(self, stream.get(), &buffer, first))
    first = false;
  boost::system::error_code ignored;
  stream->socket().shutdown(tcp::socket::shutdown_send, ignored);
}

// A refusal on account of the header alone.
std::optional<Message> HttpServer::Impl::refusal(
    const http::request<http::string_body>& message) const {
  const auto host = message.find(http::field::host);
  if (host == message.end()) {
    return plain(http::status::bad_request, "the request has no Host header", 11);
  }
  if (!host_allowed(host->value(), loopback, options.allowed_hosts)) {
    return plain(http::status::misdirected_request, "this server does not answer to that Host", 11);
  }
  const auto origin = message.find(http::field::origin);
  if (origin == message.end()) return std::nullopt;
  std::string_view from = origin->value();
  const auto scheme = from.find("://");
  from = scheme == from.npos ? std::string_view() : from.substr(scheme + 3);
  if (host_allowed(from, loopback, options.allowed_hosts)) return std::nullopt;
  return plain(http::status::forbidden, "this server does not answer to pages of that Origin", 11);
}

// True when the connection may go on.
async::task<bool> HttpServer::Impl::one_request(Impl* self,
                                                beast::tcp_stream* stream,
                                                beast::flat_buffer* buffer,
                                                bool first) {
  const HttpServerOptions& options = self->options;
  if (buffer->size() == 0) {  // the header's limit begins with its first byte
    stream->expires_after(first ? options.header_limit : options.idle_limit);
    const auto room = buffer->prepare(kFirstRead_bytes);
    const auto [code, size] = co_await stream->async_read_some(room, kToken);
    if (code) co_return false;
    buffer->commit(size);
  }
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(limits::kHttpHeader_bytes_max));
  parser.body_limit(options.body_bytes_max);
  stream->expires_after(options.header_limit);
  auto [code, header_size] = co_await http::async_read_header(*stream, *buffer, parser, kToken);
  std::optional<Message> refused;
  if (!code) refused = self->refusal(parser.get());
  if (!code && !refused && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    http::response<http::empty_body> proceed(http::status::continue_, 11);
    const auto [failed, sent] = co_await http::async_write(*stream, proceed, kToken);
    if (failed) co_return false;
  }
  if (!code && !refused) {
    stream->expires_after(options.body_limit);
    const auto [failed, body_size] = co_await http::async_read(*stream, *buffer, parser, kToken);
    code = failed;
  }
  if (code) refused = complaint(code);
  if (code && !refused) co_return false;
  const bool keep_alive = !refused && parser.get().keep_alive();
  Message message;
  if (refused) {
    message = std::move(*refused);
  } else {
    stream->expires_never();
    const bool head = parser.get().method() == http::verb::head;
    const unsigned version = parser.get().version();
    HttpRequest request = request_of(parser.release());
    HttpResponse response = co_await respond(self, std::move(request));
    message = message_of(std::move(response), keep_alive, head, version);
  }
  stream->expires_after(options.body_limit);
  const auto [failed, sent] = co_await http::async_write(*stream, message, kToken);
  co_return !failed && keep_alive;
}

async::task<HttpResponse> HttpServer::Impl::respond(Impl* self, HttpRequest request) {
  HttpResponse failed;
  failed.status = 500;
  failed.content_type = "text/plain; charset=utf-8";
  try {
    auto answer = self->handler(std::move(request));
    HttpResponse response = co_await std::move(answer);
    co_return response;
  } catch (const boost::system::system_error& thrown) {
    if (thrown.code() == asio::error::operation_aborted && self->work.scope().cancelled()) throw;
    failed.body = std::string("internal error: ") + thrown.what() + "\n";
  } catch (const std::exception& thrown) {
    failed.body = std::string("internal error: ") + thrown.what() + "\n";
  }
  co_return failed;
}

core::Result<std::unique_ptr<HttpServer>> HttpServer::open(async::IoThreads& io,
                                                           HttpServerOptions options,
                                                           Handler handler) {
  auto impl = std::make_unique<Impl>(io, std::move(options), std::move(handler));
  TROUPE_TRY_ASSIGN(acceptor,
                    listen_on(impl->work.executor(), impl->options.host, impl->options.port));
  const auto endpoint = acceptor.local_endpoint();
  impl->loopback = endpoint.address().is_loopback();
  impl->port = endpoint.port();
  impl->acceptor.emplace(std::move(acceptor));
  impl->work.start(Impl::accept_all(impl.get()));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() {
  stop();
}

std::uint16_t HttpServer::port() const noexcept {
  return impl_->port;
}

void HttpServer::stop() {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->work.stop([this] {
    boost::system::error_code ignored;
    impl_->acceptor->close(ignored);
  });
}

}  // namespace troupe::net
