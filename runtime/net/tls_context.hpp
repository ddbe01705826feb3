// The TLS settings of a gateway and its clients: TLS 1.3 only, no session tickets, no early data.
// In token mode the gateway shows a self-signed certificate that is not checked, since the token's
// proof is bound to the TLS session. In CA mode both ends show and check certificates. Immutable
// once made.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/openssl.hpp"

namespace troupe::net {

// The contexts of the gateway and of its clients (tunnels). Errors (kConfig): those of check_auth,
// a file that is not PEM, a key that others can read or that is not the certificate's, a
// certificate that the CA did not sign or that has expired.
core::Result<SslContextPtr> make_gateway_context(const GatewayAuth& auth);
core::Result<SslContextPtr> make_tunnel_context(const GatewayAuth& auth);

// For clients in CA mode, after the handshake: if the gateway's certificate names hosts, `host`
// must be among them.
core::Result<void> check_host_name(SSL* ssl, const std::string& host);

}  // namespace troupe::net
