#include "runtime/net/any_stream.hpp"

#include "runtime/net/await_token.hpp"

#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <array>

namespace troupe::net {

struct AnyStream::Tls {
  Tls(Plain& plain, boost::asio::ssl::context& context) : stream(plain, context) {}
  boost::asio::ssl::stream<Plain&> stream;
};

AnyStream::AnyStream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls)
    : plain_(std::move(socket)) {
  if (tls != nullptr) tls_ = std::make_unique<Tls>(plain_, *tls);
}

AnyStream::AnyStream(const executor_type& executor, boost::asio::ssl::context* tls)
    : AnyStream(boost::asio::ip::tcp::socket(executor), tls) {}

AnyStream::~AnyStream() = default;

void AnyStream::read_some(Done done) {
  if (tls_) return tls_->stream.async_read_some(reading_, std::move(done));
  plain_.async_read_some(reading_, std::move(done));
}

void AnyStream::write_some(Done done) {
  if (tls_) return tls_->stream.async_write_some(writing_, std::move(done));
  plain_.async_write_some(writing_, std::move(done));
}

void AnyStream::tear_down(boost::beast::role_type role, Done done) {
  using boost::beast::websocket::async_teardown;
  if (tls_) return async_teardown(role, tls_->stream, std::move(done));
  async_teardown(role, plain_.socket(), std::move(done));
}

async::task<AnyStream::Greeting> AnyStream::greet() {
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

async::task<boost::system::error_code> AnyStream::agree(std::string host) {
  boost::system::error_code code;
  if (!tls_) co_return code;
  tls_->stream.set_verify_callback(boost::asio::ssl::host_name_verification(host), code);
  if (code) co_return code;
  SSL_set_tlsext_host_name(tls_->stream.native_handle(), host.c_str());
  const auto [failed] =
      co_await tls_->stream.async_handshake(boost::asio::ssl::stream_base::client, kToken);
  co_return failed;
}

async::task<void> AnyStream::finish() {
  if (tls_) {
    const auto [code] = co_await tls_->stream.async_shutdown(kToken);
    static_cast<void>(code);
  }
  boost::system::error_code ignored;
  plain_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace troupe::net
