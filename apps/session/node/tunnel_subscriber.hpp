// A WeightSubscriber that fetches weights from a trainer on another host through the company's
// gateway; on the trainer's own host it only passes calls on. The tunnel, and the connection
// through it, stay open from version to version. The process says what the tunnel logs, such as a
// certificate that ends soon. Used on the engine's fetch thread;
// owned by the generator role.
#pragma once

#include "apps/session/node/join_flags.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <memory>

namespace troupe::session {

class TunnelSubscriber final : public weights::WeightSubscriber {
 public:
  // `io` and `target` outlive it.
  TunnelSubscriber(async::IoThreads& io,
                   const JoinTarget& target,
                   std::shared_ptr<weights::WeightSubscriber> inner);
  ~TunnelSubscriber() override;

  core::Result<std::unique_ptr<weights::WeightIntake>> fetch(
      core::Version at_least,
      const weights::WeightLocation& location,
      core::Duration patience) override;
  void close() override { inner_->close(); }

 private:
  async::IoThreads& io_;
  const JoinTarget& target_;
  std::shared_ptr<weights::WeightSubscriber> inner_;
  std::unique_ptr<net::Tunnel> tunnel_;
};

}  // namespace troupe::session
