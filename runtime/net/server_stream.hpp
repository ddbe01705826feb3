// A connection of the HTTP server, plain or with TLS, as one stream for Beast, with the timers of
// beast::tcp_stream. On the server's strand; at most one read and one write at a time.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/net/await_token.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <utility>

namespace troupe::net {

class ServerStream {
 public:
  using Plain = boost::beast::tcp_stream;
  using executor_type = Plain::executor_type;

  // `tls` outlives the stream; null: a plain connection.
  ServerStream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls)
      : plain_(std::move(socket)) {
    if (tls != nullptr) tls_.emplace(plain_, *tls);
  }

  executor_type get_executor() noexcept { return plain_.get_executor(); }
  boost::asio::ip::tcp::socket& socket() noexcept { return plain_.socket(); }
  Plain& plain() noexcept { return plain_; }
  bool encrypted() const noexcept { return tls_.has_value(); }
  template <class Span>
  void expires_after(Span span) {
    plain_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(span));
  }
  void expires_never() { plain_.expires_never(); }

  enum class Greeting { kDone, kFailed, kNoTls };
  // Agrees with the client on TLS; nothing to do for a plain connection. kNoTls: the client speaks
  // something else, and can be answered on `plain()`.
  async::task<Greeting> greet() {
    if (!tls_) co_return Greeting::kDone;
    constexpr char kHandshake = 0x16;  // the first byte of every TLS connection
    std::array<char, 4096> bytes;
    const auto room = boost::asio::buffer(bytes);
    const auto [code, size] = co_await plain_.async_read_some(room, kToken);
    if (code) co_return Greeting::kFailed;
    if (bytes[0] != kHandshake) co_return Greeting::kNoTls;
    const auto read = boost::asio::buffer(bytes.data(), size);
    const auto [failed, used] =
        co_await tls_->async_handshake(boost::asio::ssl::stream_base::server, read, kToken);
    co_return failed ? Greeting::kFailed : Greeting::kDone;
  }
  // Ends the direction to the client; with TLS by close_notify, as long as the timer allows.
  async::task<void> finish() {
    if (tls_) {
      const auto [code] = co_await tls_->async_shutdown(kToken);
      static_cast<void>(code);
    }
    boost::system::error_code ignored;
    plain_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& into) {
          if (tls_) return tls_->async_read_some(into, std::move(handler));
          return plain_.async_read_some(into, std::move(handler));
        },
        token, buffers);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& from) {
          if (tls_) return tls_->async_write_some(from, std::move(handler));
          return plain_.async_write_some(from, std::move(handler));
        },
        token, buffers);
  }

 private:
  Plain plain_;
  std::optional<boost::asio::ssl::stream<Plain&>> tls_;
};

}  // namespace troupe::net
