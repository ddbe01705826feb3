#include "runtime/net/gateway_protocol.hpp"

#include "runtime/net/keyed_proof.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <cstring>

namespace troupe::net {
namespace {

constexpr char kMagic[] = {'T', 'R', 'D', 'P'};
constexpr char kVersion = 1;
constexpr std::size_t kHello_bytes = 8 + 32;
constexpr std::size_t kVerdict_bytes = 3 + 32;
constexpr std::size_t kVerdictText_bytes_max = 1024;
using Block = std::array<char, 32>;

core::Result<Block> random_block() {
  Block block;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(block.data()), 32) != 1)
    return openssl_failure(ErrorCode::kResources, "no random bytes");
  return block;
}

// What both ends know of one greeting; the proofs cover all of it.
struct Exchange {
  Block client_nonce = {};
  Block gateway_nonce = {};
  std::array<unsigned char, 32> binding = {};
  char errand = 0;
  std::string service;
};

// The HMAC by which `role` ("client" or "gateway") proves that it holds the token.
core::Result<std::string> proof_of(const char* role,
                                   const Exchange& exchange,
                                   const std::string& token) {
  std::string text = std::string("troupe gateway v1 ") + role;
  text += '\0';
  text.append(exchange.client_nonce.data(), 32);
  text.append(exchange.gateway_nonce.data(), 32);
  text.append(reinterpret_cast<const char*>(exchange.binding.data()), 32);
  text += exchange.errand;
  text += exchange.service;
  return keyed_proof(token, text);
}

bool same(const std::string& a, const char* b) {
  return CRYPTO_memcmp(a.data(), b, 32) == 0;
}

bool plain_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == std::string::npos;
}

// Checks the fixed-size part of the client's first message, which precedes the service's name.
core::Result<void> check_hello(const std::array<char, kHello_bytes>& hello, bool by_token) {
  if (std::memcmp(hello.data(), kMagic, 4) != 0)
    return core::fail(ErrorCode::kPeerLost, "the peer does not speak the gateway's protocol");
  if (hello[4] != kVersion) {
    return core::fail(ErrorCode::kPeerLost,
                      "the peer speaks version " +
                          std::to_string(static_cast<unsigned char>(hello[4])) +
                          " of the gateway's protocol, not 1");
  }
  const bool errand = hello[5] >= static_cast<char>(GatewayErrand::kIntroduce) &&
                      hello[5] <= static_cast<char>(GatewayErrand::kOffer);
  const auto length = static_cast<unsigned char>(hello[7]);
  if (!errand || length == 0 || length > kServiceName_bytes_max)
    return core::fail(ErrorCode::kPeerLost, "the peer's hello is malformed");
  if (hello[6] != (by_token ? 0 : 1)) {
    return core::fail(ErrorCode::kConfig, by_token ? "the peer has no join token"
                                                   : "the peer has a token, not a certificate");
  }
  return {};
}

}  // namespace

std::string printable(const std::string& text) {
  constexpr std::size_t kShown_bytes_max = 200;
  std::string shown = text.substr(0, kShown_bytes_max);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return shown;
}

async::task<core::Result<GatewayRequest>> admit(TlsStream* tls, const GatewayAuth* auth) {
  std::array<char, kHello_bytes> hello;
  TROUPE_CO_TRY(co_await tls->read_exactly(hello.data(), hello.size()));
  TROUPE_CO_TRY(check_hello(hello, auth->by_token()));
  Exchange exchange;
  std::memcpy(exchange.client_nonce.data(), hello.data() + 8, 32);
  exchange.errand = hello[5];
  exchange.service.resize(static_cast<unsigned char>(hello[7]));
  TROUPE_CO_TRY(co_await tls->read_exactly(exchange.service.data(), exchange.service.size()));
  if (!plain_name(exchange.service))
    co_return core::fail(ErrorCode::kPeerLost, "the peer's hello is malformed");
  GatewayRequest request;
  request.errand = static_cast<GatewayErrand>(exchange.errand);
  const std::size_t slash = exchange.service.find('/');
  request.service = exchange.service.substr(0, slash);
  if (slash != std::string::npos) request.label = exchange.service.substr(slash + 1);
  if (!auth->by_token()) co_return request;

  TROUPE_CO_TRY_SET(exchange.gateway_nonce, random_block());
  TROUPE_CO_TRY_SET(exchange.binding, tls->channel_binding());
  TROUPE_CO_TRY(co_await tls->write(exchange.gateway_nonce.data(), 32));
  Block given;
  TROUPE_CO_TRY(co_await tls->read_exactly(given.data(), given.size()));
  TROUPE_CO_TRY_ASSIGN(wanted, proof_of("client", exchange, auth->token));
  if (!same(wanted, given.data())) {
    std::string reason = "wrong join token";
    TROUPE_CO_TRY(co_await answer(tls, GatewayVerdict::kNotProven, "", std::move(reason)));
    co_return core::fail(ErrorCode::kConfig, "wrong join token");
  }
  TROUPE_CO_TRY_SET(request.proof, proof_of("gateway", exchange, auth->token));
  co_return request;
}

async::task<core::Result<void>> answer(TlsStream* tls,
                                       GatewayVerdict verdict,
                                       std::string proof,
                                       std::string text) {
  if (text.size() > kVerdictText_bytes_max) text.resize(kVerdictText_bytes_max);
  proof.resize(32, '\0');
  std::string bytes;
  bytes += static_cast<char>(verdict);
  bytes += static_cast<char>(text.size() >> 8);
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += proof + text;
  auto sent = co_await tls->write(bytes.data(), bytes.size());
  co_return sent;
}

namespace {

core::Failure refusal(GatewayVerdict verdict, const std::string& text) {
  const std::string reason = "the gateway refused: " + printable(text);
  switch (verdict) {
    case GatewayVerdict::kNotProven:
      return core::fail(ErrorCode::kConfig, reason);
    case GatewayVerdict::kNoService:
      return core::fail(ErrorCode::kNotFound, reason);
    case GatewayVerdict::kFull:
      return core::fail(ErrorCode::kOverloaded, reason);
    case GatewayVerdict::kWelcome:
      break;
  }
  return core::fail(ErrorCode::kPeerLost, "the gateway's verdict is malformed");
}

// Reads the verdict; `wanted` is the proof that the gateway must show, empty in CA mode.
async::task<core::Result<std::string>> verdict_of(TlsStream* tls, std::string wanted) {
  std::array<char, kVerdict_bytes> head;
  TROUPE_CO_TRY(co_await tls->read_exactly(head.data(), head.size()));
  const std::size_t size = static_cast<std::size_t>(static_cast<unsigned char>(head[1])) * 256 +
                           static_cast<unsigned char>(head[2]);
  if (size > kVerdictText_bytes_max)
    co_return core::fail(ErrorCode::kPeerLost, "the gateway's verdict is malformed");
  std::string text(size, '\0');
  TROUPE_CO_TRY(co_await tls->read_exactly(text.data(), text.size()));
  const auto verdict = static_cast<GatewayVerdict>(head[0]);
  if (verdict != GatewayVerdict::kWelcome) co_return refusal(verdict, text);
  if (!wanted.empty() && !same(wanted, head.data() + 3)) {
    co_return core::fail(ErrorCode::kConfig,
                         "the gateway could not prove that it holds the join token",
                         "it is not this run's gateway");
  }
  co_return text;
}

}  // namespace

async::task<core::Result<std::string>> enter(TlsStream* tls,
                                             const GatewayAuth* auth,
                                             GatewayErrand errand,
                                             std::string service) {
  if (!plain_name(service) || service.size() > kServiceName_bytes_max)
    co_return core::fail(ErrorCode::kConfig, "'" + printable(service) + "' is not a service name");
  Exchange exchange;
  TROUPE_CO_TRY_SET(exchange.client_nonce, random_block());
  exchange.errand = static_cast<char>(errand);
  exchange.service = std::move(service);
  std::string hello(kMagic, 4);
  hello += kVersion;
  hello += exchange.errand;
  hello += auth->by_token() ? '\0' : '\1';
  hello += static_cast<char>(exchange.service.size());
  hello.append(exchange.client_nonce.data(), 32);
  hello += exchange.service;
  TROUPE_CO_TRY(co_await tls->write(hello.data(), hello.size()));
  std::string wanted;
  if (auth->by_token()) {
    TROUPE_CO_TRY(co_await tls->read_exactly(exchange.gateway_nonce.data(), 32));
    TROUPE_CO_TRY_SET(exchange.binding, tls->channel_binding());
    TROUPE_CO_TRY_ASSIGN(own, proof_of("client", exchange, auth->token));
    TROUPE_CO_TRY(co_await tls->write(own.data(), own.size()));
    TROUPE_CO_TRY_SET(wanted, proof_of("gateway", exchange, auth->token));
  }
  auto text = co_await verdict_of(tls, std::move(wanted));
  co_return text;
}

}  // namespace troupe::net
