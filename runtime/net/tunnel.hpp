// The client's side of a gateway: listens on a Unix socket, and carries each connection made to it
// (by processes of this user) through the gateway at HOST:PORT to one service of the run. Works on
// a strand of the io threads, which outlive it; call its functions from other threads. Bounds:
// kGatewayConnections_max connections at once; kTunnelConnect to reach the gateway and prove
// itself.
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
  // Introduces itself at the gateway before it opens the socket, so that this call reports a wrong
  // proof. Blocks for `deadline` at most (longer only if the system resolves `host` slowly); not
  // for io threads. `log` is called on the strand for each connection that cannot be carried later,
  // and with news of the certificates (LiveContext), first of all in this call.
  // Errors: kConfig (wrong proof of either end), kNotFound (no such service), kPeerLost (nobody
  // there, or not a gateway), kDeadline, kResources (the socket cannot be made).
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

  // The path of the Unix socket.
  const std::string& path() const noexcept;
  // The pass that the gateway gave when the tunnel introduced itself.
  const std::string& pass() const noexcept;

  // Closes the socket and all connections, and waits until their coroutines have ended. Idempotent.
  // Not on an io thread.
  void stop();

 private:
  struct Impl;
  explicit Tunnel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::net
