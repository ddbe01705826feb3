// A TCP connection, plain or with TLS, as one stream for Beast, with the timers of
// beast::tcp_stream: of the HTTP server and of the clients of HTTP and WebSocket. What Beast asks
// of it goes through one kind of handler, so that its templates are compiled once and not for each
// kind of connection. One strand; at most one read and one write at a time.
#pragma once

#include "runtime/async/task.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace boost::asio::ssl {
class context;
}

namespace troupe::net {

// A handler of a read, a write or an end whose type is forgotten. (Boost 1.81's
// any_completion_handler does not go with beast::tcp_stream.)
class StreamDone {
 public:
  using executor_type = boost::asio::any_io_executor;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  template <class Handler>
  StreamDone(Handler handler, const executor_type& otherwise)
      : executor_(boost::asio::get_associated_executor(handler, otherwise)),
        slot_(boost::asio::get_associated_cancellation_slot(handler)),
        call_(std::make_unique<Call<Handler>>(std::move(handler))) {}

  executor_type get_executor() const noexcept { return executor_; }
  cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }
  void operator()(boost::system::error_code code, std::size_t size = 0) {
    const auto call = std::move(call_);
    call->run(code, size);
  }

 private:
  struct AnyCall {
    virtual ~AnyCall() = default;
    virtual void run(boost::system::error_code code, std::size_t size) = 0;
  };
  template <class Handler>
  struct Call final : AnyCall {
    explicit Call(Handler given) : handler(std::move(given)) {}
    void run(boost::system::error_code code, std::size_t size) override {
      if constexpr (std::is_invocable_v<Handler, boost::system::error_code, std::size_t>)
        std::move(handler)(code, size);
      else
        std::move(handler)(code);
    }
    Handler handler;
  };
  executor_type executor_;
  cancellation_slot_type slot_;
  std::unique_ptr<AnyCall> call_;
};

class AnyStream {
 public:
  using Plain = boost::beast::tcp_stream;
  using executor_type = Plain::executor_type;

  // `tls` outlives the stream; null: a plain connection. The second makes one that is not open yet.
  AnyStream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);
  AnyStream(const executor_type& executor, boost::asio::ssl::context* tls);
  ~AnyStream();

  executor_type get_executor() noexcept { return plain_.get_executor(); }
  boost::asio::ip::tcp::socket& socket() noexcept { return plain_.socket(); }
  Plain& plain() noexcept { return plain_; }
  bool encrypted() const noexcept { return tls_ != nullptr; }
  template <class Span>
  void expires_after(Span span) {
    plain_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(span));
  }
  void expires_at(std::chrono::steady_clock::time_point when) { plain_.expires_at(when); }
  void expires_never() { plain_.expires_never(); }

  enum class Greeting { kDone, kFailed, kNoTls };
  // Server: agrees with the client on TLS; nothing to do for a plain connection. kNoTls: the client
  // speaks something else, and can be answered on `plain()`.
  async::task<Greeting> greet();
  // Client: agrees with the host on TLS and checks its certificate; nothing to do for a plain
  // connection.
  async::task<boost::system::error_code> agree(std::string host);
  // Ends the direction to the peer; with TLS by close_notify, as long as the timer allows.
  async::task<void> finish();

  // Beast's AsyncStream.
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& into) {
          reading_.assign(boost::asio::buffer_sequence_begin(into),
                          boost::asio::buffer_sequence_end(into));
          read_some(Done(std::move(handler), get_executor()));
        },
        token, buffers);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& from) {
          writing_.assign(boost::asio::buffer_sequence_begin(from),
                          boost::asio::buffer_sequence_end(from));
          write_some(Done(std::move(handler), get_executor()));
        },
        token, buffers);
  }
  // What Beast's WebSocket asks of its streams.
  template <class Handler>
  friend void async_teardown(boost::beast::role_type role, AnyStream& stream, Handler&& handler) {
    stream.tear_down(role, Done(std::forward<Handler>(handler), stream.get_executor()));
  }
  friend void beast_close_socket(AnyStream& stream) { stream.plain_.close(); }

 private:
  struct Tls;
  using Done = StreamDone;
  void read_some(Done done);   // into reading_
  void write_some(Done done);  // from writing_
  void tear_down(boost::beast::role_type role, Done done);

  Plain plain_;
  std::unique_ptr<Tls> tls_;
  std::vector<boost::asio::mutable_buffer> reading_;
  std::vector<boost::asio::const_buffer> writing_;
};

}  // namespace troupe::net
