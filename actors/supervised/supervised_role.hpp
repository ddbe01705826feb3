// The policy role of supervised training: fetches the rows of a step from the data role and has the
// trainer take an optimiser step over them; evaluates on the held-out rows, which it fetches once
// and keeps; saves its state and the model. An update of the other roles' messages is a step here.
// Runs on its strand; the trainer runs on the device thread. Bounds: the rows of one step; the
// held-out rows; kAnswers_max answers.
#pragma once

#include "actors/protocol/messages_rows.hpp"
#include "actors/protocol/trainer_role.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::supervised {

class SupervisedRole : public TrainerRole<learn::SupervisedTrainer> {
 public:
  // `tokenizer_from`: the folder whose tokenizer files go with a saved model. `scores`: it trains a
  // reward model, which gets the scale of its scores at the last evaluation.
  SupervisedRole(RoleContext context,
                 std::unique_ptr<learn::SupervisedTrainer> trainer,
                 std::string data_peer,
                 std::filesystem::path tokenizer_from,
                 bool scores,
                 store::Disk& disk = store::system_disk());

  // A step over the rows at the places [update * groups, (update + 1) * groups) of the order. A
  // repeated request gets the same answer; no step is taken twice.
  async::task<core::Result<Trained>> on(TrainUpdate request);
  // A repeated request gets the same answer. Error kInvalidArgument: the weights are no longer
  // those after that many steps, and no answer is kept.
  async::task<core::Result<Trained>> on(EvaluateRows request);
  async::task<core::Result<Ack>> on(SaveState request);

  using TrainerRole::on;

 private:
  using Rows = std::shared_ptr<std::vector<TrainingRow>>;
  async::task<core::Result<Rows>> fetch(std::uint64_t first, std::uint32_t count);
  async::task<core::Result<void>> fetch_held_out();

  const std::string data_peer_;
  const bool scores_;
  Rows held_out_;                                 // null until the first evaluation
  std::map<std::uint64_t, Trained> evaluations_;  // answers by steps
};

}  // namespace troupe::actors::supervised
