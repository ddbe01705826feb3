// Copies bytes both ways between a TLS connection and a local socket, or between two TLS
// connections, until both directions have ended. When one direction ends properly, `carry` ends it
// at the other side too and goes on with the other direction. A broken connection shows as an error
// or a reset, never as a proper end. Runs on the connection's executor. Bound: kTunnelBuffer_bytes
// for each direction.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/tls_stream.hpp"

#include <boost/asio/generic/stream_protocol.hpp>

#include <atomic>

namespace troupe::net {

// The local end of a carried connection: a Unix socket, or TCP on the loopback interface.
using LocalSocket = boost::asio::generic::stream_protocol::socket;

// With `reset`, closing the TCP socket resets the connection (SO_LINGER 0); without, it ends it
// properly. `carry` switches the reset off when both directions ended properly.
void reset_on_close(int socket, bool reset);

// Sets TCP_NODELAY, and keep-alive options that detect a vanished host within about 30 s.
void set_peer_options(TlsStream::Socket& socket);

// When bytes last came over a TLS connection. Any thread.
class LastHeard {
 public:
  void now() { at_.store(core::steady_clock().now().time_since_epoch().count()); }
  core::TimePoint when() const { return core::TimePoint(core::Duration(at_.load())); }

 private:
  std::atomic<core::Duration::rep> at_{0};
};

async::task<core::Result<void>> carry(TlsStream* tls, LocalSocket* local, LastHeard* heard);
// `heard`: of `one`.
async::task<core::Result<void>> carry(TlsStream* one, TlsStream* other, LastHeard* heard);

}  // namespace troupe::net
