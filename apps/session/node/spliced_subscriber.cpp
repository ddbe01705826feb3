// Replaces the trainer's address by the near end of a splice.
#include "apps/session/node/spliced_subscriber.hpp"

#include "runtime/weights/push_protocol.hpp"

namespace troupe::app {

SplicedSubscriber::SplicedSubscriber(async::IoThreads& io,
                                     const JoinTarget& target,
                                     std::shared_ptr<weights::WeightSubscriber> inner)
    : io_(io), target_(target), inner_(std::move(inner)) {}

SplicedSubscriber::~SplicedSubscriber() {
  if (splice_) splice_->stop();
}

core::Result<std::unique_ptr<weights::WeightIntake>> SplicedSubscriber::fetch(
    core::Version at_least, const weights::WeightLocation& location, core::Duration patience) {
  if (location.host_id == weights::own_host_id()) {
    return inner_->fetch(at_least, location, patience);
  }
  if (!splice_) {
    TROUPE_TRY_ASSIGN(splice, enter(io_, target_, "weights"));
    splice_ = std::move(splice);
  }
  weights::WeightLocation near = location;
  near.socket.clear();
  near.tcp_host = splice_->path();
  return inner_->fetch(at_least, near, patience);
}

}  // namespace troupe::app
