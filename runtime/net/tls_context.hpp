// The TLS settings of the two ends of a gateway: TLS 1.3 alone, no session tickets, no early data.
// In token mode the gateway shows a throw-away certificate that nobody checks (the token is checked
// over the channel's own secret); in CA mode both ends show and check certificates. Immutable once
// made.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/openssl.hpp"

namespace troupe::net {

// Errors (kConfig): a file that is no PEM, a key that others can read or that does not fit, an own
// certificate that the CA did not sign or that has expired.
core::Result<SslContextPtr> make_gateway_context(const GatewayAuth& auth);
core::Result<SslContextPtr> make_tunnel_context(const GatewayAuth& auth);

// CA mode, the client's side after the handshake: a certificate that names hosts must name this
// one.
core::Result<void> check_host_name(SSL* ssl, const std::string& host);

}  // namespace troupe::net
