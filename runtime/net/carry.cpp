#include "runtime/net/carry.hpp"

#include "runtime/async/scope.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/limits.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <vector>

namespace troupe::net {

namespace asio = boost::asio;

namespace {

core::Failure broken(const boost::system::error_code& code) {
  return core::fail(ErrorCode::kPeerLost, "local connection: " + code.message());
}

// Copies local -> TLS until the local end closes.
async::task<core::Result<void>> outwards(TlsStream* tls, LocalSocket* local) {
  std::vector<char> buffer(limits::kTunnelBuffer_bytes);
  for (;;) {
    const asio::mutable_buffer room = asio::buffer(buffer);
    const auto [code, size] = co_await local->async_read_some(room, kToken);
    if (code == asio::error::eof) {
      auto ended = co_await tls->finish();
      co_return ended;
    }
    if (code) co_return broken(code);
    TROUPE_CO_TRY(co_await tls->write(buffer.data(), size));
  }
}

// Copies TLS -> local until the peer ends its direction.
async::task<core::Result<void>> inwards(TlsStream* tls, LocalSocket* local, LastHeard* heard) {
  std::vector<char> buffer(limits::kTunnelBuffer_bytes);
  for (;;) {
    auto got = co_await tls->read_some(buffer.data(), buffer.size());
    if (!got) co_return got.failure();
    heard->now();
    if (*got == 0) {
      boost::system::error_code code;
      local->shutdown(LocalSocket::shutdown_send, code);
      co_return core::Result<void>();
    }
    const asio::const_buffer bytes = asio::buffer(buffer.data(), *got);
    const auto [code, size] = co_await asio::async_write(*local, bytes, kToken);
    if (code) co_return broken(code);
  }
}

// Copies TLS -> TLS until the first peer ends its direction.
async::task<core::Result<void>> across(TlsStream* from, TlsStream* to, LastHeard* heard) {
  std::vector<char> buffer(limits::kTunnelBuffer_bytes);
  for (;;) {
    auto got = co_await from->read_some(buffer.data(), buffer.size());
    if (!got) co_return got.failure();
    if (heard != nullptr) heard->now();
    if (*got == 0) {
      auto ended = co_await to->finish();
      co_return ended;
    }
    TROUPE_CO_TRY(co_await to->write(buffer.data(), *got));
  }
}

}  // namespace

void reset_on_close(int socket, bool reset) {
  // Set here and not through Asio, whose sockets undo their own linger option when destroyed.
  const linger option{reset ? 1 : 0, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, sizeof option);
}

void set_peer_options(TlsStream::Socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&socket](int name, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 15);
  set(TCP_KEEPINTVL, 5);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, 30'000);
}

async::task<core::Result<void>> carry(TlsStream* tls, LocalSocket* local, LastHeard* heard) {
  boost::system::error_code ignored;
  local->set_option(asio::ip::tcp::no_delay(true), ignored);  // a Unix socket has no delay
  std::vector<async::task<core::Result<void>>> pumps;
  pumps.push_back(outwards(tls, local));
  pumps.push_back(inwards(tls, local, heard));
  auto done = co_await async::all(std::move(pumps));
  if (done) reset_on_close(local->native_handle(), false);
  co_return done;
}

async::task<core::Result<void>> carry(TlsStream* one, TlsStream* other, LastHeard* heard) {
  std::vector<async::task<core::Result<void>>> pumps;
  pumps.push_back(across(one, other, heard));
  pumps.push_back(across(other, one, nullptr));
  auto done = co_await async::all(std::move(pumps));
  co_return done;
}

}  // namespace troupe::net
