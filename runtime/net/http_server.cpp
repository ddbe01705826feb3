// The HTTP server on Boost.Beast. Each connection has a coroutine; the stream's timer limits each
// read and write. With watch_clients, a second coroutine watches the client during a request.
#include "runtime/net/http_server.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/core/open_files.hpp"
#include "runtime/net/any_stream.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/http_address.hpp"
#include "runtime/net/http_callers.hpp"
#include "runtime/net/http_head.hpp"
#include "runtime/net/http_watch.hpp"
#include "runtime/net/listener.hpp"
#include "runtime/net/strand_scope.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http.hpp>

#include <optional>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr std::size_t kFirstRead_bytes = 4096;
constexpr std::chrono::milliseconds kLook{50};  // between two searches for a silent connection
constexpr std::size_t kBuffer_bytes_max =
    limits::kHttpHeader_bytes_max + limits::kHttpReadAhead_bytes_max;

using Stream = AnyStream;
using StreamPtr = std::shared_ptr<Stream>;
using Caller = HttpCallers::Caller;
using Parser = HttpParser;
using Complaint = HttpComplaint;
using Request = http::request<http::string_body>;
using Message = http::response<http::string_body>;

// What to do with a connection after a request.
enum class Then { kNext, kClose, kLinger };

// The complaint about an unreadable request; none if the connection ended or was too slow.
std::optional<Complaint> complaint_of(const boost::system::error_code& code) {
  if (code == http::error::body_limit)
    return Complaint{http::status::payload_too_large, "the body is too large"};
  if (code == http::error::header_limit || code == http::error::buffer_overflow)
    return Complaint{http::status::request_header_fields_too_large, "the header is too large"};
  if (code == http::error::end_of_stream || code == http::error::partial_message ||
      code.category() != http::make_error_code(http::error::end_of_stream).category()) {
    return std::nullopt;
  }
  return Complaint{http::status::bad_request, "this is no HTTP request: " + code.message()};
}

HttpRequest request_of(Request&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const HttpTarget target = target_of(message.target());
  request.path = std::string(target.path);
  request.query = std::string(target.query);
  if (!target.authority.empty()) message.set(http::field::host, std::string(target.authority));
  for (const auto& field : message)
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
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
  async::task<void> make_room();
  async::task<void> converse(Caller caller);
  async::task<void> turn_away(Caller caller);
  async::task<bool> meet(Stream* stream);
  async::task<Then> one_request(Caller caller, beast::flat_buffer* buffer);
  async::task<Then> answer(StreamPtr stream, Parser* parser);
  async::task<HttpResponse> respond(HttpRequest request);
  async::task<bool> send_stream(Stream* stream,
                                HttpResponse response,
                                std::shared_ptr<HttpPresence> client,
                                bool chunked);
  HttpResponse complain(int status, const std::string& why, const std::string& path) const;
  Message last_word(const Complaint& complaint, const Parser& parser) const;

  const HttpServerOptions options;
  const Handler handler;
  async::SteadyTimers timers;
  StrandScope work;
  std::optional<tcp::acceptor> acceptor;
  HttpCallers callers;
  std::size_t refusals = 0;
  HttpHosts hosts;
  std::uint16_t port = 0;
};

async::task<void> HttpServer::Impl::accept_all() {
  for (;;) {
    while (!core::has_room_for_strangers(acceptor->native_handle())) {
      if (!callers.cut_silent(timers.now())) co_await async::sleep_for(timers, kLook);
    }
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
    const core::TimePoint since = silent_since(socket, timers.now());
    auto caller = std::make_shared<HttpCaller>(
        std::move(socket), options.tls ? &options.tls->native() : nullptr, since);
    co_await make_room();
    if (callers.size() < options.connections_max) {
      callers.add(caller);
      work.scope().spawn("", converse(std::move(caller)));
      continue;
    }
    while (refusals >= limits::kHttpRefusals_max)
      co_await async::sleep_for(timers, limits::kHttpRefusalPause);
    work.scope().spawn("", turn_away(std::move(caller)));
    ++refusals;
  }
}

// Where there are as many connections as there may be, and somebody waits: those that say nothing
// give way.
async::task<void> HttpServer::Impl::make_room() {
  while (callers.size() >= options.connections_max && callers.any_awaited()) {
    co_await asio::post(work.executor(), kToken);  // what was read already counts first
    if (callers.size() < options.connections_max) co_return;
    if (!callers.cut_silent(timers.now())) co_await async::sleep_for(timers, kLook);
  }
}

async::task<void> HttpServer::Impl::converse(Caller caller) {
  const core::AtExit gone([this, caller] { callers.remove(caller); });
  const StreamPtr stream = caller->stream;
  stream->expires_after(options.header_limit);
  const bool greeted = co_await meet(stream.get());
  if (!greeted) co_return;
  beast::flat_buffer buffer(kBuffer_bytes_max);
  Then then = co_await one_request(caller, &buffer);
  while (then == Then::kNext) {
    caller->is_awaited(timers.now());
    then = co_await one_request(caller, &buffer);
  }
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
  const AnyStream::Greeting greeting = co_await stream->greet();
  if (greeting != AnyStream::Greeting::kNoTls) co_return greeting == AnyStream::Greeting::kDone;
  const Message message = last_word(
      {http::status::bad_request, "this port speaks TLS; use https:// in the URL"}, Parser());
  const auto [failed, sent] = co_await http::async_write(stream->plain(), message, kToken);
  if (!failed) co_await drain(stream);
  co_return false;
}

// Refuses a connection beyond the limit. Reads its header first, since a client that is still
// sending would not see the reply.
async::task<void> HttpServer::Impl::turn_away(Caller caller) {
  const Counted counted{refusals};
  const StreamPtr stream = caller->stream;
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
  const std::string path(target_of(parser.get().target()).path);
  return message_of(complain(status, complaint.why, path), false, false, 11);
}

async::task<Then> HttpServer::Impl::one_request(Caller caller, beast::flat_buffer* buffer) {
  StreamPtr stream = caller->stream;
  if (buffer->size() == 0) {  // header_limit counts from the header's first byte
    stream->expires_after(caller->asked ? options.idle_limit : options.header_limit);
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
  if (!code) caller->has_asked();
  std::optional<Complaint> refused;
  if (folded) refused = Complaint{http::status::bad_request, "a line of the header is folded"};
  if (!code && !refused) refused = address_complaint(parser.get(), hosts);
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
  impl->hosts = {endpoint.address().is_loopback(), impl->options.allowed_hosts};
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

}  // namespace troupe::net
