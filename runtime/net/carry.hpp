// Carries bytes both ways between a TLS connection and a local socket until both directions have
// ended. It passes the end of one direction on while the other continues; it passes a broken
// connection on as a reset, never as a proper end. Runs on the connection's executor. Bound:
// kTunnelBuffer_bytes a direction.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/tls_stream.hpp"

#include <boost/asio/generic/stream_protocol.hpp>

namespace troupe::net {

// The local end of a carried connection: a Unix socket, or TCP on the loopback interface.
using LocalSocket = boost::asio::generic::stream_protocol::socket;

// Closing a TCP socket from now on resets the connection; `carry` takes that back at a proper end.
void reset_on_close(int socket, bool reset);

// Sets TCP_NODELAY, and keep-alive that notices a vanished host within a minute.
void set_peer_options(TlsStream::Socket& socket);

async::task<core::Result<void>> carry(TlsStream* tls, LocalSocket* local);

}  // namespace troupe::net
