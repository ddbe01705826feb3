// The TLS context for the next connection of a gateway or a tunnel. In CA mode it looks at the
// files of CA, certificate and key, and reads them again when they have changed; connections that
// are open keep what they began with. Files that do not go together are reported and the last good
// ones stay in use. Reports a certificate that ends within kCertificateWarning, once in
// kCertificateWarnEvery. Owned by a gateway or a tunnel, used on its strand.
#pragma once

#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/tls_context.hpp"

#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>

namespace troupe::net {

class LiveContext {
 public:
  enum class Side { kGateway, kTunnel };
  using Log = std::function<void(const std::string&)>;

  // `log` may be empty. Errors: those of make_gateway_context.
  static core::Result<LiveContext> open(GatewayAuth auth, Side side, Log log);

  // The context as the files are now. Valid until the next call; a connection that was made from it
  // keeps it alive.
  SSL_CTX* current(std::time_t now = std::time(nullptr));

 private:
  // What changes with a file: its device, inode, size and time of modification.
  using Stamp = std::array<std::uint64_t, 5>;
  using Stamps = std::array<Stamp, 3>;

  LiveContext(GatewayAuth auth, Side side, Log log);
  Stamps stamps() const;
  core::Result<void> read();
  void warn(std::time_t now);
  void say(const std::string& what) const;

  GatewayAuth auth_;
  Side side_;
  Log log_;
  Stamps seen_{};
  SslContextPtr context_;
  std::time_t end_ = 0;  // of the certificate or its CA, whichever is first; 0 in token mode
  std::optional<std::time_t> warned_;
};

}  // namespace troupe::net
