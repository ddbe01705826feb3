// The policy role fetches an update's experience from the data role in slot order, gets the
// critic's values where there is a critic, and has the trainer learn; it also publishes the new
// weights and saves its state and the model. Runs on its strand; the trainer runs on the device
// thread. One update at a time.
#pragma once

#include "actors/policy/critic_link.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/trainer_role.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::actors::policy {

class PolicyRole : public TrainerRole<learn::PolicyTrainer> {
 public:
  // `tokenizer_from`: the folder whose tokenizer files go with a saved model.
  PolicyRole(RoleContext context,
             std::unique_ptr<learn::PolicyTrainer> trainer,
             std::shared_ptr<weights::WeightPublisher> publisher,
             std::string data_peer,
             std::filesystem::path tokenizer_from,
             CriticLink critic = {},
             store::Disk& disk = store::system_disk());

  // A repeated request gets the same answer; the policy does not learn twice.
  async::task<core::Result<Trained>> on(TrainUpdate request);
  // A repeated request gets the version that is published already, and where to fetch it.
  async::task<core::Result<Published>> on(PublishWeights request);

  using TrainerRole::on;

 private:
  async::task<core::Result<TrainGroups>> fetch(TrainUpdate request);
  async::task<core::Result<learn::UpdateReport>> learn(std::uint64_t update, TrainGroups groups);
  async::task<core::Result<learn::UpdateReport>> learn_with_critic(std::uint64_t update,
                                                                   learn::ValueTargets targets);

  const std::shared_ptr<weights::WeightPublisher> publisher_;
  const std::string data_peer_;
  const CriticLink critic_;
};

}  // namespace troupe::actors::policy
