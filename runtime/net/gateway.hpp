// The only port that a run opens to other hosts. A peer connects by TLS 1.3, proves itself by the
// join token or a certificate of the run's CA, and names a service. The gateway then carries its
// bytes to that service's Unix socket or port on 127.0.0.1, or to a peer that offers the service
// (Offer). `open` refuses to start without authentication. A peer that has not proved itself within
// kGatewayAuthentication is cut off, one whose service is not reached within kGatewayReach too.
// After kGatewayFailures_max wrong proofs within a minute, an address from which no peer has proved
// itself is refused for up to a minute (docs/security.md). Certificates that change are read again
// for new connections (LiveContext). Lives in the run's head process and works on threads of its
// own, up to kGatewayThreads_max: connections prove themselves on one strand, then each is carried
// on a strand of its own. Bounds: limits kGateway*.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/gateway_auth.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace troupe::net {

class Gateway {
 public:
  struct Hooks {
    // Logs a refusal, such as "10.0.0.2:4711: wrong join token". Called on the gateway's strand.
    std::function<void(const std::string&)> refused;
    // Returns the pass, letters, digits and '-', for a peer that has proved itself and asks for one
    // (kIntroduce). Called on the strand.
    std::function<std::string(const std::string& service, const std::string& peer)> pass;
    // Logs news of the certificates: that they end soon, were read again or cannot be used.
    std::function<void(const std::string&)> certificates;
  };
  // Where the gateway carries the bytes of a service: to a Unix socket or to a port of 127.0.0.1.
  struct Service {
    Service(std::string unix_path) : path(std::move(unix_path)) {}
    Service(std::uint16_t loopback_port) : port(loopback_port) {}
    std::string path;
    std::uint16_t port = 0;
  };
  using Services = std::map<std::string, Service>;

  // Port 0 takes a free one. Errors: kConfig (bad credentials or address), kResources (the port is
  // taken).
  static core::Result<std::unique_ptr<Gateway>> open(const std::string& host,
                                                     std::uint16_t port,
                                                     GatewayAuth auth,
                                                     Services services,
                                                     Hooks hooks);
  ~Gateway();  // stop()
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // Adds a service, or changes its target for new connections. Any thread.
  void set_service(const std::string& name, Service service);
  // New connections no longer find it. Any thread.
  void drop_service(const std::string& name);
  std::uint16_t port() const noexcept;
  // When bytes last came from the peer that was given this pass; none while it has no connection.
  // Any thread.
  std::optional<core::TimePoint> heard(const std::string& pass) const;

  // Closes the port and all connections, and waits until their coroutines have ended. Idempotent.
  // Not in a hook.
  void stop();

 private:
  struct Impl;
  explicit Gateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::net
