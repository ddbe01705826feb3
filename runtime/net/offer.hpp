// A service of this host that peers reach through a gateway on another host, which cannot dial this
// one: keeps kOffers_ready connections ready at the gateway, and carries the bytes of each that is
// taken to a Unix socket of this user. When the gateway is gone it tries again, every kOfferPause.
// Works on a strand of the io threads, which outlive it; call its functions from other threads.
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

class Offer {
 public:
  // `path`: of the Unix socket. The gateway at HOST:PORT knows the service when this returns.
  // Blocks for `deadline` at most (longer only if the system resolves `host` slowly); not for io
  // threads. `log` is called on the strand when a connection cannot be made or carried later.
  // Errors: those of Tunnel::open; kNotFound: the gateway has a service of that name itself.
  static core::Result<std::unique_ptr<Offer>> open(
      async::IoThreads& io,
      const std::string& host,
      std::uint16_t port,
      GatewayAuth auth,
      const std::string& service,
      const std::string& path,
      core::Duration deadline,
      std::function<void(const std::string&)> log = {});
  ~Offer();  // stop()
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  // Offers the service no longer; the connections that were taken are carried on.
  void end();
  // Closes all connections and waits until their coroutines have ended. Idempotent. Not on an io
  // thread.
  void stop();

 private:
  struct Impl;
  explicit Offer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::net
