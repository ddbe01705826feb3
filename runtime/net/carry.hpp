// Carries bytes both ways between a TLS connection and a local socket until both directions have
// ended. An end of one direction is passed on and the other goes on; a broken connection is passed
// on as a broken one, never as an end. Runs on the connection's executor. Bound:
// kTunnelBuffer_bytes a direction.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/tls_stream.hpp"

#include <boost/asio/generic/stream_protocol.hpp>

namespace troupe::net {

// The near end of what is carried: a Unix socket, or TCP on the loopback interface.
using LocalSocket = boost::asio::generic::stream_protocol::socket;

// Closing a TCP socket from now on resets the connection; `carry` takes that back at a proper end.
void reset_on_close(int socket, bool reset);

// No delay, and an end within a minute when the other host has vanished.
void set_peer_options(TlsStream::Socket& socket);

async::task<core::Result<void>> carry(TlsStream* tls, LocalSocket* local);

}  // namespace troupe::net
