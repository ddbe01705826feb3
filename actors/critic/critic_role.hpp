// The critic role computes the values of an update's tokens for the policy, page by page, then
// learns from the returns. It keeps an update's groups, values and returns from the first page
// until the training. The values for update u (from 0) are those of the critic after u updates.
// Runs on its strand; the trainer runs on the device thread. One update at a time; bound: the
// groups of one update.
#pragma once

#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/trainer_role.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::actors::critic {

class CriticRole : public TrainerRole<learn::CriticTrainer> {
 public:
  // `tokenizer_from`: the folder whose tokenizer files go with a saved model.
  CriticRole(RoleContext context,
             std::unique_ptr<learn::CriticTrainer> trainer,
             std::filesystem::path tokenizer_from,
             store::Disk& disk = store::system_disk());

  // A repeated request gets the same values; refused once the critic has learned from the update.
  // Other groups at a place that it has take the place of those from there on.
  async::task<core::Result<CriticValues>> on(ScoreValues request);
  // Acknowledges and ignores returns that it has; others take their place, and that of the rest.
  async::task<core::Result<Ack>> on(PutReturns request);
  // A repeated request gets the same answer; the critic does not learn twice.
  async::task<core::Result<Trained>> on(TrainCritic request);

  using TrainerRole::on;

 private:
  // An update between its first page and its training.
  struct Held {
    std::uint64_t update = 0;
    std::vector<experience::Group> groups;
    learn::TokenValues values, returns;
  };

  std::optional<CriticValues> known_values(const ScoreValues& request) const;
  bool known_returns(const PutReturns& request) const;
  core::Result<void> check_page(const char* what,
                                std::uint64_t update,
                                std::uint32_t cursor,
                                std::size_t held) const;

  std::shared_ptr<Held> held_;
};

}  // namespace troupe::actors::critic
