// The greeting on a new TLS connection between a client and a gateway: the client asks for a
// service and, in token mode, both ends prove that they hold the token without sending it.
// Coroutines on the connection's executor; the caller arms a timer that bounds them.
//
//   client -> gateway   "TRDP" version errand proof-kind name-length nonce[32] name[/label]
//   gateway -> client   nonce[32]                                  only in token mode
//   client -> gateway   hmac[32]                                   only in token mode
//   gateway -> client   verdict text-length[2, big endian] hmac[32] text
//
// Fields without a size are one byte; the hmac of the verdict is zero in CA mode. The HMAC-SHA256
// covers a label of the sender, both nonces, a secret exported from this TLS session, the errand
// and the service's name with its label, so a recorded proof is useless on any other connection.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/tls_stream.hpp"

#include <cstdint>
#include <string>

namespace troupe::net {

inline constexpr std::size_t kServiceName_bytes_max = 128;  // with the label

enum class GatewayErrand : std::uint8_t {
  kIntroduce = 1,  // the client proves itself and gets a pass
  kCarry = 2,      // the client wants to be connected to the service
  kOffer = 3,      // the client is the service, for one peer that asks for it
};

// What a client that offers a service gets, once, when it is connected with a peer.
inline constexpr char kOfferTaken = 1;

enum class GatewayVerdict : std::uint8_t {
  kWelcome = 0,
  kNotProven = 1,  // wrong token
  kNoService = 2,  // no such service, or it does not accept connections; not one to offer
  kFull = 3        // the gateway carries kGatewayConnections_max connections
};

struct GatewayRequest {
  GatewayErrand errand = GatewayErrand::kIntroduce;
  std::string service;
  std::string label;  // the pass of the client that wants to be connected; empty without one
  std::string proof;  // the HMAC that the gateway sends with its verdict; empty in CA mode
};

// The gateway's side up to the verdict; `answer` sends the verdict. Errors: kPeerLost, kClosed;
// kConfig for a wrong token (`admit` has sent the verdict then) or the wrong kind of proof.
async::task<core::Result<GatewayRequest>> admit(TlsStream* tls, const GatewayAuth* auth);
async::task<core::Result<void>> answer(TlsStream* tls,
                                       GatewayVerdict verdict,
                                       std::string proof,
                                       std::string text);

// The client's side; `service` is a name, or "name/label". Returns the text of the gateway's
// welcome: the pass after kIntroduce, else empty. Errors: kConfig (wrong proof of either end),
// kNotFound (no such service, or not one to offer), kOverloaded (gateway full), kPeerLost, kClosed.
async::task<core::Result<std::string>> enter(TlsStream* tls,
                                             const GatewayAuth* auth,
                                             GatewayErrand errand,
                                             std::string service);

// Makes a text from a peer safe to print: bytes other than printable ASCII become '?', and only the
// first 200 bytes are kept.
std::string printable(const std::string& text);

}  // namespace troupe::net
