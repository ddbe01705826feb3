#include "apps/session/node/tunnel_subscriber.hpp"

#include "apps/cli/words.hpp"
#include "runtime/weights/push_protocol.hpp"

namespace troupe::session {

TunnelSubscriber::TunnelSubscriber(async::IoThreads& io,
                                   const JoinTarget& target,
                                   std::shared_ptr<weights::WeightSubscriber> inner)
    : io_(io), target_(target), inner_(std::move(inner)) {}

TunnelSubscriber::~TunnelSubscriber() {
  if (tunnel_) tunnel_->stop();
}

core::Result<std::unique_ptr<weights::WeightIntake>> TunnelSubscriber::fetch(
    core::Version at_least, const weights::WeightLocation& location, core::Duration patience) {
  if (location.host_id == weights::own_host_id()) {
    return inner_->fetch(at_least, location, patience);
  }
  if (!tunnel_) {
    TROUPE_TRY_SET(tunnel_, enter(io_, target_, "weights", cli::say));
  }
  weights::WeightLocation near = location;
  near.socket.clear();
  near.tcp_host = tunnel_->path();
  return inner_->fetch(at_least, near, patience);
}

}  // namespace troupe::session
