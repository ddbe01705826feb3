// The policy role: fetches an update's experience from the data role, in ticket order, and has the
// trainer learn from it; publishes the new weights; writes its state and the model.
// Runs on its strand; the trainer runs on the device thread. One request at a time.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/learn/trainer.hpp"
#include "runtime/weights/weight_channel.hpp"
#include "runtime/wire/role_report.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>

namespace troupe::actors {

class PolicyRole {
 public:
  // `tokenizer_from`: the folder whose tokenizer files go with a saved model.
  PolicyRole(RoleContext context,
             std::unique_ptr<learn::PolicyTrainer> trainer,
             std::shared_ptr<weights::WeightPublisher> publisher,
             std::string data_peer,
             std::filesystem::path tokenizer_from);

  async::task<core::Result<Trained>> on(TrainUpdate request);
  async::task<core::Result<Published>> on(PublishWeights request);
  async::task<core::Result<Ack>> on(SaveState request);
  async::task<core::Result<Ack>> on(LoadState request);
  async::task<core::Result<Ack>> on(SaveModel request);

  std::string state() const;
  wire::Amounts amounts() const;

 private:
  // A job of the device thread; the role's account says what it is.
  template <class Job>
  async::task<std::invoke_result_t<Job&>> work(const char* what, Job job);

  RoleContext context_;
  std::shared_ptr<learn::PolicyTrainer> trainer_;  // used on the device thread alone
  std::shared_ptr<weights::WeightPublisher> publisher_;
  std::string data_peer_;
  std::filesystem::path tokenizer_from_;
  std::string doing_;  // "" between requests
  core::Version version_ = 0;
  std::uint64_t updates_ = 0;
};

}  // namespace troupe::actors
