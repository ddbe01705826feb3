#include "runtime/net/tls_stream.hpp"

#include "runtime/core/check.hpp"
#include "runtime/net/await_token.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

namespace troupe::net {

namespace asio = boost::asio;

namespace {
// Bytes of encrypted records that are collected, so that one buffer of a tunnel takes one send.
constexpr std::size_t kOut_bytes_max = 80u << 10;
constexpr std::size_t kWrite_bytes_max = 64u << 10;  // plain text given to OpenSSL at once
}  // namespace

// Like OpenSSL's socket BIO, but without SIGPIPE, and aware that Asio may have closed the socket.
// Writing only collects records; `flush` sends them.
int TlsStream::bio_write(BIO* bio, const char* data, int size) {
  auto* state = static_cast<BioState*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (!state->socket.is_open()) return -1;
  if (state->out.size() + static_cast<std::size_t>(size) > kOut_bytes_max) {
    BIO_set_retry_write(bio);
    return -1;
  }
  state->out.insert(state->out.end(), data, data + size);
  return size;
}

int TlsStream::bio_read(BIO* bio, char* into, int size) {
  auto* state = static_cast<BioState*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (!state->socket.is_open()) return -1;
  const auto got =
      ::recv(state->socket.native_handle(), into, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_read(bio);
  state->eof = got == 0;
  return static_cast<int>(got);
}

long TlsStream::bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return static_cast<BioState*>(BIO_get_data(bio))->eof ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* TlsStream::bio_method() {
  static const std::unique_ptr<BIO_METHOD, OpensslFree<BIO_meth_free>> method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "asio socket");
    TROUPE_CHECK(made != nullptr, "no memory for a BIO method");
    BIO_meth_set_write(made, &TlsStream::bio_write);
    BIO_meth_set_read(made, &TlsStream::bio_read);
    BIO_meth_set_ctrl(made, &TlsStream::bio_control);
    return std::unique_ptr<BIO_METHOD, OpensslFree<BIO_meth_free>>(made);
  }();
  return method.get();
}

TlsStream::TlsStream(Socket socket, SSL_CTX* context, Side side)
    : bio_{std::move(socket)}, ssl_(SSL_new(context)) {
  BIO* bio = BIO_new(bio_method());
  if (!ssl_ || bio == nullptr) {
    BIO_free_all(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, &bio_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (side == Side::kServer) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

TlsStream::~TlsStream() = default;

// Waits until the socket is ready for what OpenSSL wants, or returns the error that prevents it.
async::task<core::Result<void>> TlsStream::wait_for(int ssl_error, const char* doing) {
  if (ssl_error == SSL_ERROR_WANT_READ || ssl_error == SSL_ERROR_WANT_WRITE) {
    ERR_clear_error();
    if (!bio_.socket.is_open()) co_return core::fail(ErrorCode::kClosed, "closed");
    const auto which = ssl_error == SSL_ERROR_WANT_READ ? Socket::wait_read : Socket::wait_write;
    const auto [code] = co_await bio_.socket.async_wait(which, kToken);
    if (code) co_return core::fail(ErrorCode::kClosed, code.message());
    co_return core::Result<void>();
  }
  const int system_error = errno;
  std::string reason;
  if (!bio_.socket.is_open()) {
    ERR_clear_error();
    co_return core::fail(ErrorCode::kClosed, "closed");
  }
  if (ssl_error == SSL_ERROR_SYSCALL) {
    reason = system_error != 0 ? std::string(std::strerror(system_error)) : "the connection ended";
    ERR_clear_error();
  } else {
    reason = openssl_reason();
    const long verified = SSL_get_verify_result(ssl_.get());
    if (verified != X509_V_OK && (SSL_get_verify_mode(ssl_.get()) & SSL_VERIFY_PEER) != 0)
      reason += std::string(" (") + X509_verify_cert_error_string(verified) + ")";
  }
  co_return core::fail(ErrorCode::kPeerLost, std::string(doing) + ": " + reason);
}

async::task<core::Result<void>> TlsStream::flush() {
  while (bio_.sent < bio_.out.size()) {
    if (!bio_.socket.is_open()) co_return core::fail(ErrorCode::kClosed, "closed");
    const auto sent = send_some();
    if (sent > 0) {
      bio_.sent += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TROUPE_CO_TRY(co_await wait_for(SSL_ERROR_WANT_WRITE, "TLS write"));
    } else if (errno != EINTR) {
      co_return core::fail(ErrorCode::kPeerLost, std::string("TLS write: ") + std::strerror(errno));
    }
  }
  bio_.out.clear();
  bio_.sent = 0;
  co_return core::Result<void>();
}

ssize_t TlsStream::send_some() noexcept {
  return ::send(bio_.socket.native_handle(), bio_.out.data() + bio_.sent,
                bio_.out.size() - bio_.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
}

async::task<core::Result<void>> TlsStream::handshake() {
  bio_.socket.native_non_blocking(true);
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const int done = SSL_do_handshake(ssl_.get());
    const int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
    if (error == SSL_ERROR_NONE || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      ERR_clear_error();
      TROUPE_CO_TRY(co_await flush());
      if (done == 1) co_return core::Result<void>();
      if (error == SSL_ERROR_WANT_WRITE) continue;
    } else if (bio_.socket.is_open() && bio_.sent < bio_.out.size()) {
      static_cast<void>(send_some());  // the TLS alert that tells the peer why
    }
    TROUPE_CO_TRY(co_await wait_for(error, "TLS handshake"));
  }
}

async::task<core::Result<std::size_t>> TlsStream::read_some(char* into, std::size_t size) {
  std::size_t total = 0;
  for (;;) {
    ERR_clear_error();
    errno = 0;
    std::size_t got = 0;
    const int done = SSL_read_ex(ssl_.get(), into + total, size - total, &got);
    total += got;
    if (done == 1 && total < size) continue;
    if (total > 0) {  // an error after these bytes is returned by the next call
      ERR_clear_error();
      co_return total;
    }
    const int error = SSL_get_error(ssl_.get(), done);
    if (error == SSL_ERROR_ZERO_RETURN) co_return std::size_t{0};
    if (error == SSL_ERROR_WANT_WRITE) {  // answers to the peer's key updates have filled `out`
      ERR_clear_error();
      co_return core::fail(ErrorCode::kPeerLost, "TLS read: too many key updates");
    }
    TROUPE_CO_TRY(co_await wait_for(error, "TLS read"));
  }
}

async::task<core::Result<void>> TlsStream::read_exactly(char* into, std::size_t size) {
  while (size > 0) {
    auto got = co_await read_some(into, size);
    if (!got) co_return got.failure();
    if (*got == 0) co_return core::fail(ErrorCode::kPeerLost, "the connection ended too early");
    into += *got;
    size -= *got;
  }
  co_return core::Result<void>();
}

async::task<core::Result<void>> TlsStream::write(const char* data, std::size_t size) {
  while (size > 0) {
    ERR_clear_error();
    errno = 0;
    std::size_t taken = 0;
    const std::size_t most = std::min(size, kWrite_bytes_max);
    const int done = SSL_write_ex(ssl_.get(), data, most, &taken);
    if (done == 1) {
      data += taken;
      size -= taken;
      if (size > 0 && bio_.out.size() < kWrite_bytes_max) continue;
    } else if (const int error = SSL_get_error(ssl_.get(), done); error != SSL_ERROR_WANT_WRITE) {
      TROUPE_CO_TRY(co_await wait_for(error, "TLS write"));
    }
    TROUPE_CO_TRY(co_await flush());
  }
  co_return core::Result<void>();
}

async::task<core::Result<void>> TlsStream::finish() {
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const int done = SSL_shutdown(ssl_.get());  // 0: sent; the peer's close_notify is still to come
    const int error = done >= 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
    if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_WRITE)
      TROUPE_CO_TRY(co_await wait_for(error, "TLS end"));
    TROUPE_CO_TRY(co_await flush());
    if (done >= 0) co_return core::Result<void>();
  }
}

core::Result<std::array<unsigned char, 32>> TlsStream::channel_binding() {
  std::array<unsigned char, 32> secret = {};
  constexpr char kLabel[] = "EXPORTER-troupe-gateway-v1";
  if (SSL_export_keying_material(ssl_.get(), secret.data(), secret.size(), kLabel,
                                 sizeof kLabel - 1, nullptr, 0, 0) != 1) {
    return openssl_failure(ErrorCode::kInternal, "no channel binding");
  }
  return secret;
}

void TlsStream::cut() {
  boost::system::error_code ignored;
  bio_.socket.close(ignored);
}

}  // namespace troupe::net
