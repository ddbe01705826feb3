// A TLS connection over an Asio socket. Both directions work at once, and each ends by itself
// (close_notify). Its coroutines wait for the socket to become ready, then let OpenSSL read or
// write. Owned by the coroutine of its connection; all calls on one executor, at most one reader
// and one writer at a time. It has no timeouts: whoever starts a handshake arms a timer that calls
// `cut`.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/openssl.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstddef>
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

  // Errors of all calls: kPeerLost, which says what went wrong; kClosed after `cut` or
  // cancellation.
  async::task<core::Result<void>> handshake();

  // Reads at least one byte, and as many as have arrived. Returns their number; 0 once the peer has
  // ended its direction properly.
  async::task<core::Result<std::size_t>> read_some(char* into, std::size_t size);
  async::task<core::Result<void>> read_exactly(char* into, std::size_t size);
  async::task<core::Result<void>> write(const char* data, std::size_t size);

  // Ends the direction to the peer (close_notify); reading may go on.
  async::task<core::Result<void>> finish();

  // A secret exported from this TLS session, which only its two ends know.
  core::Result<std::array<unsigned char, 32>> channel_binding();

  // Closes the socket; coroutines that wait on it return kClosed.
  void cut();
  Socket& socket() noexcept { return bio_.socket; }
  SSL* native() noexcept { return ssl_.get(); }

 private:
  struct BioState {
    Socket socket;
    bool eof = false;
    std::vector<char> out{};  // encrypted records that wait for `flush`; at most kOut_bytes_max
    std::size_t sent = 0;     // bytes of `out` that were sent
  };
  static int bio_write(BIO* bio, const char* data, int size);
  static int bio_read(BIO* bio, char* into, int size);
  static long bio_control(BIO* bio, int command, long number, void* pointer);
  static const BIO_METHOD* bio_method();

  async::task<core::Result<void>> wait_for(int ssl_error, const char* doing);
  // Sends what `out` holds. The handshake and the writer call it, never the reader.
  async::task<core::Result<void>> flush();
  // Tries once, without waiting, to send what is left of `out`. Returns what ::send returns.
  ssize_t send_some() noexcept;

  BioState bio_;
  SslPtr ssl_;
};

}  // namespace troupe::net
