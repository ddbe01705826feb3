// A client's connections to a gateway: dialled, let in by the gateway, and cut when that takes too
// long. Owned by a Tunnel or an Offer, used on its strand.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/gateway_protocol.hpp"
#include "runtime/net/live_context.hpp"
#include "runtime/net/tls_stream.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe::net {

// A connection that a timer can cut at any stage.
struct Dialled {
  explicit Dialled(const async::Executor& executor) : socket(executor), resolver(executor) {}
  void cut();
  boost::asio::ip::tcp::socket socket;  // moved into `tls` once connected
  boost::asio::ip::tcp::resolver resolver;
  std::optional<TlsStream> tls;
  bool late = false;
};

class GatewayDialler {
 public:
  GatewayDialler(std::string host, std::uint16_t port, GatewayAuth auth, LiveContext context)
      : host_(std::move(host)), port_(port), auth_(std::move(auth)), context_(std::move(context)) {}

  // Connects and asks for `service` ("name" or "name/label"); returns the text of the welcome.
  // Errors, which name the gateway: those of `enter`; kPeerLost (nobody there, or not a gateway),
  // kDeadline (not let in within `limit`).
  async::task<core::Result<std::string>> pass(std::shared_ptr<Dialled> dialled,
                                              GatewayErrand errand,
                                              std::string service,
                                              core::Duration limit);

 private:
  std::string where() const { return "gateway " + host_ + ":" + std::to_string(port_); }
  async::task<core::Result<void>> dial(Dialled* dialled);
  async::task<core::Result<std::string>> enter_gateway(Dialled* dialled,
                                                       GatewayErrand errand,
                                                       std::string service);

  const std::string host_;
  const std::uint16_t port_;
  const GatewayAuth auth_;
  LiveContext context_;
  async::SteadyTimers timers_{};
};

}  // namespace troupe::net
