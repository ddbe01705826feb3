// The only port that a company opens to other hosts. Speaks TLS 1.3; a peer proves itself by the
// join token or by a certificate of the run's CA and names a service; the gateway then carries its
// bytes to that service's Unix socket, or port on 127.0.0.1. Owned by the node; works on a strand
// of the io threads, which outlive it; its own functions are called from other threads. Bounds:
// limits kGateway*; a peer that has not proved itself within kGatewayAuthentication is cut off. A
// gateway without authentication cannot be opened. Traffic from strangers never locks out a peer
// that can prove itself (docs/security.md).
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/gateway_auth.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace troupe::net {

class Gateway {
 public:
  struct Hooks {
    // Called on the gateway's strand for the log: "10.0.0.2:4711: wrong join token".
    std::function<void(const std::string&)> refused;
    // Called on the strand when a proven peer introduces itself; the peer gets the result, a pass.
    std::function<std::string(const std::string& service, const std::string& peer)> pass;
  };
  // Where the bytes of a service go.
  struct Service {
    Service(std::string unix_path) : path(std::move(unix_path)) {}
    Service(std::uint16_t loopback_port) : port(loopback_port) {}
    std::string path;
    std::uint16_t port = 0;
  };
  using Services = std::map<std::string, Service>;

  // Port 0 takes a free one. Errors: kConfig (the proof; the address), kResources (the port is
  // taken).
  static core::Result<std::unique_ptr<Gateway>> open(async::IoThreads& io,
                                                     const std::string& host,
                                                     std::uint16_t port,
                                                     GatewayAuth auth,
                                                     Services services,
                                                     Hooks hooks);
  ~Gateway();  // stop()
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // Adds or moves a service; connections that exist stay where they are. Any thread.
  void set_service(const std::string& name, Service service);
  std::uint16_t port() const noexcept;

  // Closes the port and every connection, and waits for their ends. Idempotent; no io thread.
  void stop();

 private:
  struct Impl;
  explicit Gateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::net
