// The client's side of a gateway: opens a Unix socket, and carries every connection that a process
// of this user makes to it through the gateway at HOST:PORT to one service there. Owned by the
// node; works on a strand of the io threads, which outlive it; its own functions are called from
// other threads. Bounds: kGatewayConnections_max connections, kTunnelConnect to enter.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/gateway_auth.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::net {

class Tunnel {
 public:
  // Introduces itself at the gateway before it opens the socket, so that a wrong proof shows here.
  // Blocks at most for `deadline`; no io thread. `log` is called on the strand for connections that
  // later cannot be carried. Errors: kConfig (the proof, either side's), kNotFound (no such
  // service), kPeerLost (nobody there, or not a gateway), kDeadline, kResources (no place for the
  // socket).
  static core::Result<std::unique_ptr<Tunnel>> open(
      async::IoThreads& io,
      const std::string& host,
      std::uint16_t port,
      GatewayAuth auth,
      const std::string& service,
      core::Duration deadline,
      std::function<void(const std::string&)> log = {});
  ~Tunnel();  // stop()
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  const std::string& path() const noexcept;
  // The pass that the gateway gave at the introduction.
  const std::string& pass() const noexcept;

  // Closes the socket and every connection, and waits for their ends. Idempotent; no io thread.
  void stop();

 private:
  struct Impl;
  explicit Tunnel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::net
