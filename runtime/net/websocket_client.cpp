#include "runtime/net/websocket_client.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/outbound.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;

namespace {

core::Failure over(const Outbound& call, const std::string& why, ErrorCode code) {
  return core::fail(code, call.where() + ": " + why);
}

class Connection final : public WebSocketClient {
 public:
  Connection(Outbound call,
             Options options,
             const async::Executor& executor,
             asio::ssl::context* tls)
      : call_(std::move(call)), options_(std::move(options)), socket_(executor, tls) {
    socket_.read_message_max(options_.message_bytes_max);
    auto headers = options_.headers;
    socket_.set_option(
        websocket::stream_base::decorator([headers](websocket::request_type& request) {
          request.set(beast::http::field::user_agent, "troupe");
          for (const auto& [name, value] : headers)
            request.set(name, value);
        }));
  }

  async::task<core::Result<void>> open() {
    TROUPE_CO_TRY(co_await net::connect(&socket_.next_layer(), &call_));
    websocket::response_type response;
    const auto [failed] =
        co_await socket_.async_handshake(response, call_.url.host_header, call_.url.target, kToken);
    if (failed == websocket::error::upgrade_declined) {
      co_return over(call_,
                     "it answered the WebSocket handshake with status " +
                         std::to_string(response.result_int()),
                     ErrorCode::kData);
    }
    const bool foreign =
        failed.category() == websocket::make_error_code(websocket::error::closed).category();
    if (failed) {
      co_return call_.failure("open a WebSocket", failed,
                              foreign ? ErrorCode::kData : ErrorCode::kPeerLost);
    }
    co_return core::Result<void>();
  }

  async::task<core::Result<void>> send(std::string text, async::Deadline deadline) override {
    wait_until(deadline);
    socket_.text(true);
    const auto [failed, sent] = co_await socket_.async_write(asio::buffer(text), kToken);
    if (failed) co_return ended("send", failed);
    co_return core::Result<void>();
  }

  async::task<core::Result<std::string>> receive(async::Deadline deadline) override {
    wait_until(deadline);
    std::string text;
    auto buffer = asio::dynamic_buffer(text, options_.message_bytes_max);
    const auto [failed, got] = co_await socket_.async_read(buffer, kToken);
    if (failed == websocket::error::message_too_big ||
        failed == websocket::error::buffer_overflow) {
      co_return over(
          call_, "a message has more than " + std::to_string(options_.message_bytes_max) + " bytes",
          ErrorCode::kData);
    }
    if (failed) co_return ended("read", failed);
    if (!socket_.got_text()) co_return over(call_, "a message is not text", ErrorCode::kData);
    co_return text;
  }

  async::task<void> close(async::Deadline deadline) override {
    wait_until(deadline);
    (void)co_await socket_.async_close(websocket::close_code::normal, kToken);
  }

 private:
  void wait_until(async::Deadline deadline) {
    auto& stream = socket_.next_layer();
    if (deadline.is_none()) return stream.expires_never();
    call_.limit = deadline.remaining(core::SteadyClock());
    stream.expires_at(
        std::chrono::time_point_cast<std::chrono::steady_clock::duration>(deadline.at));
  }

  core::Failure ended(const char* doing, const boost::system::error_code& code) const {
    if (code == asio::error::operation_aborted)
      return over(call_, "the connection is over", ErrorCode::kPeerLost);
    if (code != websocket::error::closed) return call_.failure(doing, code);
    const websocket::close_reason reason = socket_.reason();
    const std::string said(reason.reason.data(), reason.reason.size());
    return over(call_,
                "the server closed the connection, code " + std::to_string(reason.code) +
                    (said.empty() ? "" : " (" + said + ")"),
                ErrorCode::kPeerLost);
  }

  Outbound call_;
  const Options options_;
  websocket::stream<AnyStream, false> socket_;  // false: no compression
};

}  // namespace

async::task<core::Result<std::unique_ptr<WebSocketClient>>> WebSocketClient::connect(
    std::string url, Options options, async::Deadline deadline) {
  if (url.starts_with("ws://")) url.replace(0, 2, "http");
  if (url.starts_with("wss://")) url.replace(0, 3, "https");
  TROUPE_CO_TRY_ASSIGN(parsed, parse_url(url));
  TROUPE_CO_TRY_ASSIGN(tls, client_tls(parsed));
  Outbound call{std::move(parsed), deadline.remaining(core::SteadyClock()), deadline.at};
  auto executor = co_await asio::this_coro::executor;
  auto made =
      std::make_unique<Connection>(std::move(call), std::move(options), std::move(executor), tls);
  TROUPE_CO_TRY(co_await made->open());
  std::unique_ptr<WebSocketClient> client = std::move(made);
  co_return client;
}

}  // namespace troupe::net
