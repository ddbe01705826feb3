// What the two ends of a gateway prove themselves with: the run's join token, or a certificate that
// the run's CA has signed. A value type; there is no third kind, so nothing is ever open to
// everybody.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::net {

struct GatewayAuth {
  std::string token;                           // 64 hexadecimal digits; or the three files below
  std::filesystem::path ca, certificate, key;  // PEM

  bool by_token() const noexcept { return !token.empty(); }
};

inline constexpr std::size_t kToken_bytes = 32;

// Exactly one of the two, whole and well-formed. Error kConfig says what is missing.
core::Result<void> check_auth(const GatewayAuth& auth);

}  // namespace troupe::net
