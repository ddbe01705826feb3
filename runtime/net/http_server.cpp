// The HTTP server on Boost.Beast. Each connection has a coroutine; the stream's timer limits each
// read and write. With watch_clients, a second coroutine watches the client during a request.
#include "runtime/net/http_server.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/http_head.hpp"
#include "runtime/net/http_watch.hpp"
#include "runtime/net/listener.hpp"
#include "runtime/net/server_stream.hpp"
#include "runtime/net/strand_scope.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <optional>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr std::size_t kFirstRead_bytes = 4096;
constexpr std::size_t kBuffer_bytes_max =
    limits::kHttpHeader_bytes_max + limits::kHttpReadAhead_bytes_max;

using Stream = ServerStream;
using StreamPtr = std::shared_ptr<Stream>;
using Parser = HttpParser;
using Complaint = HttpComplaint;
using Request = http::request<http::string_body>;
using Message = http::response<http::string_body>;

// What to do with a connection after a request.
enum class Then { kNext, kClose, kLinger };

// The complaint about an unreadable request; none if the connection ended or was too slow.
std::optional<Complaint> complaint_of(const boost::system::error_code& code) {
  if (code == http::error::body_limit) {
    return Complaint{http::status::payload_too_large, "the body is too large"};
  }
  if (code == http::error::header_limit || code == http::error::buffer_overflow) {
    return Complaint{http::status::request_header_fields_too_large, "the header is too large"};
  }
  if (code == http::error::end_of_stream || code == http::error::partial_message ||
      code.category() != http::make_error_code(http::error::end_of_stream).category()) {
    return std::nullopt;
  }
  return Complaint{http::status::bad_request, "this is no HTTP request: " + code.message()};
}

std::string path_of(std::string_view target) {
  return std::string(target.substr(0, target.find('?')));
}

HttpRequest request_of(Request&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const auto question = target.find('?');
  request.path = path_of(target);
  if (question != target.npos) request.query = target.substr(question + 1);
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

template <class Body>
http::response<Body> header_of(const HttpResponse& response, bool keep_alive, unsigned version) {
  http::response<Body> message(static_cast<http::status>(response.status), version);
  message.set(http::field::content_type, response.content_type);
  message.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers)
    message.set(name, value);
  message.keep_alive(keep_alive);
  return message;
}

std::string_view host_part(std::string_view authority) {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return end == authority.npos ? std::string_view() : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

Message message_of(HttpResponse response, bool keep_alive, bool head, unsigned version) {
  Message message = header_of<http::string_body>(response, keep_alive, version);
  message.content_length(response.body.size());
  if (!head) message.body() = std::move(response.body);
  return message;
}

// Ends a connection while bytes of the request are still arriving: reads and discards some of them.
// If the socket were closed at once, the client's system would discard the response unread.
async::task<void> drain(Stream* stream) {
  boost::system::error_code ignored;
  stream->socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream->expires_after(limits::kHttpRefusal);
  std::vector<char> trash(16u << 10);
  for (std::size_t seen = 0; seen < limits::kHttpLinger_bytes_max;) {
    const auto room = asio::buffer(trash);
    const auto [code, size] = co_await stream->plain().async_read_some(room, kToken);
    if (code) co_return;
    seen += size;
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(async::IoThreads& io, HttpServerOptions given, Handler called)
      : options(std::move(given)), handler(std::move(called)), work(io) {}

  async::task<void> accept_all();
  async::task<void> converse(StreamPtr stream);
  async::task<void> turn_away(StreamPtr stream);
  async::task<bool> meet(Stream* stream);
  async::task<Then> one_request(StreamPtr stream, beast::flat_buffer* buffer, bool first);
  async::task<Then> answer(StreamPtr stream, Parser* parser);
  async::task<HttpResponse> respond(HttpRequest request);
  async::task<bool> send_stream(Stream* stream,
                                HttpResponse response,
                                std::shared_ptr<HttpPresence> client,
                                bool chunked);
  std::optional<Complaint> refusal(const Request& message) const;
  HttpResponse complain(int status, const std::string& why, const std::string& path) const;
  Message last_word(const Complaint& complaint, const Parser& parser) const;

  const HttpServerOptions options;
  const Handler handler;
  async::SteadyTimers timers;
  StrandScope work;
  std::optional<tcp::acceptor> acceptor;
  std::size_t connections = 0, refusals = 0;
  bool loopback = true;
  std::uint16_t port = 0;
};

async::task<void> HttpServer::Impl::accept_all() {
  for (;;) {
    tcp::socket socket(work.executor());
    const auto [code] = co_await acceptor->async_accept(socket, kToken);
    if (work.scope().cancelled()) co_return;
    if (code == asio::error::connection_aborted) continue;
    if (code) {
      co_await async::sleep_for(timers, limits::kAcceptPause);
      continue;
    }
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    auto stream =
        std::make_shared<Stream>(std::move(socket), options.tls ? &options.tls->native() : nullptr);
    if (connections < options.connections_max) {
      work.scope().spawn("", converse(std::move(stream)));
      ++connections;
      continue;
    }
    while (refusals >= limits::kHttpRefusals_max)
      co_await async::sleep_for(timers, limits::kHttpRefusalPause);
    work.scope().spawn("", turn_away(std::move(stream)));
    ++refusals;
  }
}

async::task<void> HttpServer::Impl::converse(StreamPtr stream) {
  const Counted counted{connections};
  stream->expires_after(options.header_limit);
  const bool greeted = co_await meet(stream.get());
  if (!greeted) co_return;
  beast::flat_buffer buffer(kBuffer_bytes_max);
  Then then = co_await one_request(stream, &buffer, true);
  while (then == Then::kNext)
    then = co_await one_request(stream, &buffer, false);
  if (then == Then::kLinger) {
    co_await drain(stream.get());
    co_return;
  }
  stream->expires_after(limits::kHttpRefusal);
  co_await stream->finish();
}

// Agrees with the client on TLS, if the server speaks it. Tells a client that does not that it
// must.
async::task<bool> HttpServer::Impl::meet(Stream* stream) {
  const ServerStream::Greeting greeting = co_await stream->greet();
  if (greeting != ServerStream::Greeting::kNoTls)
    co_return greeting == ServerStream::Greeting::kDone;
  const Message message = last_word(
      {http::status::bad_request, "this port speaks TLS; use https:// in the URL"}, Parser());
  const auto [failed, sent] = co_await http::async_write(stream->plain(), message, kToken);
  if (!failed) co_await drain(stream);
  co_return false;
}

// Refuses a connection beyond the limit. Reads its header first, since a client that is still
// sending would not see the reply.
async::task<void> HttpServer::Impl::turn_away(StreamPtr stream) {
  const Counted counted{refusals};
  beast::flat_buffer buffer(kBuffer_bytes_max);
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(limits::kHttpHeader_bytes_max));
  parser.body_limit(boost::none);
  stream->expires_after(limits::kHttpRefusal);
  const bool greeted = co_await meet(stream.get());
  if (!greeted) co_return;
  const auto [code, size] = co_await http::async_read_header(*stream, buffer, parser, kToken);
  if (code) co_return;
  Message message = last_word(
      {http::status::service_unavailable, "there are too many connections; try again later"},
      parser);
  message.set(http::field::retry_after, "1");
  const auto [failed, sent] = co_await http::async_write(*stream, message, kToken);
  if (!failed) co_await drain(stream.get());
}

HttpResponse HttpServer::Impl::complain(int status,
                                        const std::string& why,
                                        const std::string& path) const {
  if (options.complaint) return options.complaint(status, why, path);
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = why + "\n";
  return response;
}

// The answer to a request that `parser` has read at least the first line of, if it was readable.
Message HttpServer::Impl::last_word(const Complaint& complaint, const Parser& parser) const {
  const int status = static_cast<int>(complaint.status);
  return message_of(complain(status, complaint.why, path_of(parser.get().target())), false, false,
                    11);
}

// The complaint about the Host or Origin header, if any.
std::optional<Complaint> HttpServer::Impl::refusal(const Request& message) const {
  const auto host = message.find(http::field::host);
  if (host == message.end()) {
    return Complaint{http::status::bad_request, "the request has no Host header"};
  }
  if (!host_allowed(host->value(), loopback, options.allowed_hosts)) {
    return Complaint{http::status::misdirected_request, "this server does not answer to that Host"};
  }
  const auto origin = message.find(http::field::origin);
  if (origin == message.end()) return std::nullopt;
  std::string_view from = origin->value();
  const auto scheme = from.find("://");
  from = scheme == from.npos ? std::string_view() : from.substr(scheme + 3);
  if (host_allowed(from, loopback, options.allowed_hosts)) return std::nullopt;
  return Complaint{http::status::forbidden, "this server does not answer to pages of that Origin"};
}

async::task<Then> HttpServer::Impl::one_request(StreamPtr stream,
                                                beast::flat_buffer* buffer,
                                                bool first) {
  if (buffer->size() == 0) {  // header_limit counts from the header's first byte
    stream->expires_after(first ? options.header_limit : options.idle_limit);
    const auto room = buffer->prepare(kFirstRead_bytes);
    const auto [code, size] = co_await stream->async_read_some(room, kToken);
    if (code) co_return Then::kClose;
    buffer->commit(size);
  }
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(limits::kHttpHeader_bytes_max));
  parser.body_limit(options.body_bytes_max);
  stream->expires_after(options.header_limit);
  auto [code, folded] = co_await read_http_head(stream.get(), buffer, &parser);
  std::optional<Complaint> refused;
  if (folded) refused = Complaint{http::status::bad_request, "a line of the header is folded"};
  if (!code && !refused) refused = refusal(parser.get());
  if (!code && !refused) refused = coding_complaint(parser.get());
  if (!code && !refused && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    http::response<http::empty_body> proceed(http::status::continue_, 11);
    const auto [failed, sent] = co_await http::async_write(*stream, proceed, kToken);
    if (failed) co_return Then::kClose;
  }
  if (!code && !refused) {
    stream->expires_after(options.body_limit);
    const auto [failed, body_size] = co_await http::async_read(*stream, *buffer, parser, kToken);
    code = failed;
  }
  if (code) refused = complaint_of(code);
  if (code && !refused) co_return Then::kClose;
  if (refused) {
    const Message message = last_word(*refused, parser);
    stream->expires_after(options.body_limit);
    const auto [failed, sent] = co_await http::async_write(*stream, message, kToken);
    co_return failed ? Then::kClose : Then::kLinger;
  }
  const Then then = co_await answer(std::move(stream), &parser);
  co_return then;
}

// Handles a complete request and sends the answer.
async::task<Then> HttpServer::Impl::answer(StreamPtr stream, Parser* parser) {
  const bool keep_alive = parser->get().keep_alive();
  const bool head = parser->get().method() == http::verb::head;
  const unsigned version = parser->get().version();
  stream->expires_never();
  HttpRequest request = request_of(parser->release());
  auto client = std::make_shared<HttpPresence>();
  struct Ended {
    HttpPresence& client;
    Stream& stream;
    ~Ended() {
      client.end();
      boost::system::error_code ignored;
      stream.socket().cancel(ignored);  // ends the watch
    }
  };
  const Ended ended{*client, *stream};
  if (options.watch_clients) {
    request.client = client;
    work.scope().spawn("", watch_client(stream, client, &timers));
  }
  HttpResponse response = co_await respond(std::move(request));
  if (client->gone()) co_return Then::kClose;
  bool sent = false, again = keep_alive;
  if (response.stream) {
    const bool chunked = version >= 11;
    again = again && chunked;
    sent = co_await send_stream(stream.get(), std::move(response), client, chunked);
  } else {
    const Message message = message_of(std::move(response), keep_alive, head, version);
    stream->expires_after(options.body_limit);
    const auto [failed, size] = co_await http::async_write(*stream, message, kToken);
    sent = !failed;
  }
  co_return sent&& again ? Then::kNext : Then::kClose;
}

// Sends the response of a stream piece by piece. True if all of it was sent.
async::task<bool> HttpServer::Impl::send_stream(Stream* stream,
                                                HttpResponse response,
                                                std::shared_ptr<HttpPresence> client,
                                                bool chunked) {
  auto message = header_of<http::buffer_body>(response, chunked, chunked ? 11 : 10);
  message.chunked(chunked);
  message.body().more = true;
  http::response_serializer<http::buffer_body> serializer(message);
  stream->expires_after(options.body_limit);
  const auto [failed, size] = co_await http::async_write_header(*stream, serializer, kToken);
  if (failed) co_return false;
  try {
    while (message.body().more) {
      stream->expires_never();
      auto pull = response.stream->next();
      auto piece = co_await std::move(pull);
      if (client->gone()) co_return false;
      if (piece && piece->empty()) continue;
      message.body().data = piece ? piece->data() : nullptr;
      message.body().size = piece ? piece->size() : 0;
      message.body().more = piece.has_value();
      stream->expires_after(options.body_limit);
      const auto [cut, sent] = co_await http::async_write(*stream, serializer, kToken);
      if (cut && cut != http::error::need_buffer) co_return false;  // need_buffer: all is written
    }
  } catch (const boost::system::system_error& thrown) {
    if (thrown.code() == asio::error::operation_aborted && work.scope().cancelled()) throw;
    co_return false;
  } catch (const std::exception&) {
    co_return false;
  }
  co_return true;
}

async::task<HttpResponse> HttpServer::Impl::respond(HttpRequest request) {
  std::string why;
  const std::string path = request.path;
  try {
    auto answering = handler(std::move(request));
    HttpResponse response = co_await std::move(answering);
    co_return response;
  } catch (const boost::system::system_error& thrown) {
    if (thrown.code() == asio::error::operation_aborted && work.scope().cancelled()) throw;
    why = thrown.what();
  } catch (const std::exception& thrown) {
    why = thrown.what();
  }
  co_return complain(500, "internal error: " + why, path);
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
  impl->work.start(impl->accept_all());
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
  impl_->work.stop();
  impl_->acceptor.reset();
}

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

}  // namespace troupe::net
