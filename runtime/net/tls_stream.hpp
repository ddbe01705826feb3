// A TLS connection over one Asio socket, driven by readiness: no copies beyond OpenSSL's own, both
// directions at once, each direction ended by itself (close_notify). Owned by the coroutine of its
// connection; all calls on one executor, at most one reader and one writer at a time.
// Bounds: none of its own; whoever starts a handshake arms a timer that calls `cut`.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/openssl.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace troupe::net {

class TlsStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  enum class Side { kClient, kServer };

  TlsStream(Socket socket, SSL_CTX* context, Side side);
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream();

  // The errors of all calls: kPeerLost with what went wrong; kClosed after `cut` or cancellation.
  async::task<core::Result<void>> handshake();

  // At least one byte, as many as there are; 0 when the peer has ended its direction properly.
  async::task<core::Result<std::size_t>> read_some(char* into, std::size_t size);
  async::task<core::Result<void>> read_exactly(char* into, std::size_t size);
  async::task<core::Result<void>> write(const char* data, std::size_t size);

  // Ends our direction; reading goes on.
  async::task<core::Result<void>> finish();

  // A secret that only the two ends of this very connection share, and nobody in between.
  core::Result<std::array<unsigned char, 32>> channel_binding();

  // Closes the socket; every wait ends with kClosed.
  void cut();
  Socket& socket() noexcept { return bio_.socket; }
  SSL* native() noexcept { return ssl_.get(); }

 private:
  struct BioState {
    Socket socket;
    bool eof = false;
    std::vector<char> out{};  // records that wait for `flush`; bounded by kOut_bytes_max
    std::size_t sent = 0;     // of them
  };
  static int bio_write(BIO* bio, const char* data, int size);
  static int bio_read(BIO* bio, char* into, int size);
  static long bio_control(BIO* bio, int command, long number, void* pointer);
  static const BIO_METHOD* bio_method();

  async::task<core::Result<void>> wait_for(int ssl_error, const char* doing);
  // Sends what `out` holds. The handshake and the one writer call it, never the reader.
  async::task<core::Result<void>> flush();
  // One attempt, without waiting; as ::send.
  ssize_t send_some() noexcept;

  BioState bio_;
  SslPtr ssl_;
};

}  // namespace troupe::net
