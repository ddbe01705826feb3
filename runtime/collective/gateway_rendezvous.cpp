#include "runtime/collective/gateway_rendezvous.hpp"

#include "runtime/net/limits.hpp"

namespace troupe::collective {

std::string service_of_rank(const std::string& role, std::uint64_t generation, int rank) {
  return "rank-" + role + "-" + std::to_string(rank) + "-" + std::to_string(generation);
}

core::Result<Meeting> GatewayRendezvous::meet(int rank,
                                              int size,
                                              const RankAddress& mine,
                                              const std::atomic<bool>& given_up) {
  const auto service = [this](int number) {
    return service_of_rank(gang_.role, gang_.generation, number);
  };
  if (!mine.socket.empty()) {
    TROUPE_TRY_SET(offer_,
                   net::Offer::open(*way_.io, way_.host, way_.port, way_.auth, service(rank),
                                    mine.socket, net::limits::kTunnelConnect, way_.log));
  }
  TROUPE_TRY_ASSIGN(meeting, inner_->meet(rank, size, mine, given_up));
  for (int to = 0; to < rank; ++to) {
    RankAddress& there = meeting.addresses[static_cast<std::size_t>(to)];
    if (there.host_id == mine.host_id || there.tcp_port != 0) continue;
    TROUPE_TRY_ASSIGN(tunnel,
                      net::Tunnel::open(*way_.io, way_.host, way_.port, way_.auth, service(to),
                                        net::limits::kTunnelConnect, way_.log));
    there.tcp_host = tunnel->path();
    tunnels_.push_back(std::move(tunnel));
  }
  return meeting;
}

void GatewayRendezvous::complete() {
  if (offer_) offer_->end();
}

}  // namespace troupe::collective
