// The greeting on a new TLS connection between a client and a gateway: the client asks for a
// service and, in token mode, both ends prove that they hold the token without sending it.
// Coroutines on the connection's executor; bounded by the timer that the caller arms.
//
//   client -> gateway   "TRDP" version errand proof-kind name-length nonce[32] name
//   gateway -> client   nonce[32]                                  token mode alone
//   client -> gateway   hmac[32]                                   token mode alone
//   gateway -> client   status text-length[2, big endian] hmac[32] text
//
// The HMAC-SHA256 covers a label for the side, both nonces, a secret exported from this very TLS
// session, the errand and the service, so it is useless on any other connection.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/tls_stream.hpp"

#include <cstdint>
#include <string>

namespace troupe::net {

inline constexpr std::size_t kServiceName_bytes_max = 64;

enum class GatewayErrand : std::uint8_t {
  kIntroduce = 1,  // prove itself and get a pass
  kCarry = 2,      // be connected to the service
};

enum class GatewayVerdict : std::uint8_t {
  kWelcome = 0,
  kNotProven = 1,
  kNoService = 2,
  kFull = 3
};

struct GatewayRequest {
  GatewayErrand errand = GatewayErrand::kIntroduce;
  std::string service;
  std::string proof;  // the gateway's own, for its verdict; empty in CA mode
};

// The gateway's half up to the verdict. Errors: kPeerLost, kClosed; kConfig for a wrong proof (the
// verdict has been sent then).
async::task<core::Result<GatewayRequest>> admit(TlsStream* tls, const GatewayAuth* auth);
async::task<core::Result<void>> answer(TlsStream* tls,
                                       GatewayVerdict verdict,
                                       std::string proof,
                                       std::string text);

// The client's half; returns the text of a welcome, which is the pass. Errors: kConfig (wrong
// proof, on either side), kNotFound, kOverloaded, kPeerLost, kClosed.
async::task<core::Result<std::string>> enter(TlsStream* tls,
                                             const GatewayAuth* auth,
                                             GatewayErrand errand,
                                             std::string service);

// Text from a peer, safe to print: control bytes become '?', and it ends at 200 bytes.
std::string printable(const std::string& text);

}  // namespace troupe::net
