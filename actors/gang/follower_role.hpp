// A rank of a gang that is not rank 0. It answers no requests: it does with its trainer what rank 0
// tells it, and says how that went, until the gang is over. Then it waits to be stopped. Runs on
// its strand; the trainer runs on the device thread.
#pragma once

#include "actors/gang/gang_command.hpp"
#include "actors/gang/gang_link.hpp"
#include "actors/protocol/device_work.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::actors::gang {

// What a rank does when rank 0 calls; runs on the device thread. Errors: the trainer's; kData (no
// call of this trainer).
using Obey = std::function<core::Result<void>(GangCommand command)>;
Obey obeying(std::shared_ptr<learn::PolicyTrainer> trainer,
             std::shared_ptr<weights::WeightPublisher> publisher);
Obey obeying(std::shared_ptr<learn::CriticTrainer> trainer);
Obey obeying(std::shared_ptr<learn::SupervisedTrainer> trainer);

class FollowerRole final : public cluster::Role {
 public:
  // `note`: told of an error that ended the gang here; may be null.
  FollowerRole(RoleContext context,
               Obey obey,
               std::shared_ptr<GangLink> gang,
               std::function<void(const std::string&)> note);

  async::task<core::Result<wire::Frame>> handle(wire::Frame request) override;
  async::task<core::Result<void>> run() override;
  std::string state() const override { return over_ ? "its gang is over" : work_.state(); }
  wire::Amounts amounts() const override { return {{"calls", static_cast<double>(calls_)}}; }

 private:
  // Whether the gang goes on after this call.
  using Outcome = core::Result<bool>;
  static Outcome do_one(const Obey& obey, GangLink& gang, GangCommand command, std::string& error);

  RoleContext context_;
  std::shared_ptr<GangLink> gang_;  // outlives the trainer
  Obey obey_;
  const std::function<void(const std::string&)> note_;
  DeviceWork work_;
  std::uint64_t calls_ = 0;
  bool over_ = false;
};

}  // namespace troupe::actors::gang
