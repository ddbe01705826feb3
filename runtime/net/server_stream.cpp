#include "runtime/net/server_stream.hpp"

#include "runtime/net/await_token.hpp"

#include <boost/asio/ssl/stream.hpp>

#include <array>

namespace troupe::net {

struct ServerStream::Tls {
  Tls(Plain& plain, boost::asio::ssl::context& context) : stream(plain, context) {}
  boost::asio::ssl::stream<Plain&> stream;
};

ServerStream::ServerStream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls)
    : plain_(std::move(socket)) {
  if (tls != nullptr) tls_ = std::make_unique<Tls>(plain_, *tls);
}

ServerStream::~ServerStream() = default;

void ServerStream::read_some(Done done) {
  if (tls_) return tls_->stream.async_read_some(reading_, std::move(done));
  plain_.async_read_some(reading_, std::move(done));
}

void ServerStream::write_some(Done done) {
  if (tls_) return tls_->stream.async_write_some(writing_, std::move(done));
  plain_.async_write_some(writing_, std::move(done));
}

async::task<ServerStream::Greeting> ServerStream::greet() {
  if (!tls_) co_return Greeting::kDone;
  constexpr char kHandshake = 0x16;  // the first byte of every TLS connection
  std::array<char, 4096> bytes;
  const auto room = boost::asio::buffer(bytes);
  const auto [code, size] = co_await plain_.async_read_some(room, kToken);
  if (code) co_return Greeting::kFailed;
  if (bytes[0] != kHandshake) co_return Greeting::kNoTls;
  const auto read = boost::asio::buffer(bytes.data(), size);
  const auto [failed, used] =
      co_await tls_->stream.async_handshake(boost::asio::ssl::stream_base::server, read, kToken);
  co_return failed ? Greeting::kFailed : Greeting::kDone;
}

async::task<void> ServerStream::finish() {
  if (tls_) {
    const auto [code] = co_await tls_->stream.async_shutdown(kToken);
    static_cast<void>(code);
  }
  boost::system::error_code ignored;
  plain_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace troupe::net
