// The ways of weights between nodes of different hosts: a gateway of this node's own, through which
// other nodes get what its generators have received, and tunnels to theirs. Both ends prove
// themselves with the credentials of the run, as at the head's gateway. An address of a relay is
// "HOST:PORT/SERVICE": the gateway of its node, and the service there. Owned by a `troupe node`;
// its options are used on the generators' fetching threads. Bound: kTunnels_max tunnels, of which
// the oldest makes room.
#pragma once

#include "apps/session/node/join_flags.hpp"
#include "runtime/net/gateway.hpp"
#include "runtime/weights/relay.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::session {

class RelayGate {
 public:
  // `listen`: "HOST:PORT", an address of this host that other nodes can reach; empty: this node
  // passes nothing on to other hosts, but gets weights from those that do. `io` and `target`
  // outlive it. Errors: kConfig (no address; bad credentials), kResources (the port is taken).
  static core::Result<std::unique_ptr<RelayGate>> open(async::IoThreads& io,
                                                       const JoinTarget& target,
                                                       const std::string& listen);

  // For the subscribers of this node, which this object outlives.
  weights::RelayOptions options();
  // The gateway's port; 0 without one.
  std::uint16_t port() const { return gateway_ ? gateway_->port() : std::uint16_t{0}; }

 private:
  static constexpr std::size_t kTunnels_max = 8;

  RelayGate(async::IoThreads& io, const JoinTarget& target) : io_(io), target_(target) {}
  std::string reach(std::uint32_t port);
  core::Result<net::OwnedFd> dial(const std::string& address, core::TimePoint until);
  core::Result<std::shared_ptr<net::Tunnel>> tunnel_to(const std::string& address);
  std::shared_ptr<net::Tunnel> known_tunnel(const std::string& address);

  async::IoThreads& io_;
  const JoinTarget& target_;
  std::string host_;
  std::unique_ptr<net::Gateway> gateway_;
  std::mutex mutex_;
  struct Way {
    std::string address;
    std::shared_ptr<net::Tunnel> tunnel;
  };
  std::deque<Way> ways_;
};

}  // namespace troupe::session
