#include "runtime/net/gateway_auth.hpp"

#include <algorithm>

namespace troupe::net {

core::Result<void> check_auth(const GatewayAuth& auth) {
  using core::ErrorCode;
  const bool files = !auth.ca.empty() || !auth.certificate.empty() || !auth.key.empty();
  if (auth.by_token() && files) {
    return core::fail(ErrorCode::kConfig,
                      "a join token and certificates were both given; use one of the two");
  }
  if (auth.by_token()) {
    const bool hex = std::all_of(auth.token.begin(), auth.token.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
    if (hex && auth.token.size() == 2 * kToken_bytes) return {};
    return core::fail(ErrorCode::kConfig, "a join token is 64 lower-case hexadecimal digits");
  }
  if (!files) {
    return core::fail(ErrorCode::kConfig,
                      "connections between hosts need a proof; give a join token file or the CA, "
                      "certificate and key that `troupe ca init` makes");
  }
  for (const auto& [what, path] :
       {std::pair{"CA", &auth.ca}, {"certificate", &auth.certificate}, {"key", &auth.key}}) {
    if (path->empty()) {
      return core::fail(ErrorCode::kConfig, std::string("the file of the ") + what +
                                                " is missing; CA, certificate and key go together");
    }
    std::error_code error;
    if (!std::filesystem::is_regular_file(*path, error)) {
      return core::fail(ErrorCode::kConfig,
                        std::string("there is no ") + what + " file " + path->string());
    }
  }
  return {};
}

}  // namespace troupe::net
