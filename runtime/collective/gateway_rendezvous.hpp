// The rendezvous of a rank that reaches other hosts through the gateway of the head alone, and
// which they cannot dial: between the hosts its gang's bytes go through the gateway, by TLS. The
// rank is offered there before the others hear of it, and gets a tunnel to each rank of another
// host that it dials. Offer and tunnels carry bytes as long as this object lives, so it outlives
// the gang. One thread, which is no io thread.
#pragma once

#include "runtime/collective/rank_protocol.hpp"
#include "runtime/collective/rendezvous.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/offer.hpp"
#include "runtime/net/tunnel.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace troupe::collective {

// The gateway, and the credentials for it. `io` outlives all that is opened; `log` may be empty.
struct GatewayWay {
  async::IoThreads* io = nullptr;
  std::string host;
  std::uint16_t port = 0;
  net::GatewayAuth auth;
  std::function<void(const std::string&)> log;
};

// The service of a gateway that leads to a rank of this start of a gang.
std::string service_of_rank(const std::string& role, std::uint64_t generation, int rank);

class GatewayRendezvous final : public Rendezvous {
 public:
  GatewayRendezvous(std::unique_ptr<Rendezvous> inner, const GangId& gang, GatewayWay way)
      : inner_(std::move(inner)), gang_(gang), way_(std::move(way)) {}

  // Further errors: those of net::Offer::open and net::Tunnel::open.
  core::Result<Meeting> meet(int rank,
                             int size,
                             const RankAddress& mine,
                             const std::atomic<bool>& given_up) override;
  // The gang is complete: no other peer is let through to this rank.
  void complete();

 private:
  const std::unique_ptr<Rendezvous> inner_;
  const GangId gang_;
  const GatewayWay way_;
  std::unique_ptr<net::Offer> offer_;
  std::vector<std::unique_ptr<net::Tunnel>> tunnels_;
};

}  // namespace troupe::collective
