// The policy's side of its exchange with the critic: it sends an update's groups in pages of at
// most one frame and receives their values, then sends the returns, then one request to learn.
// Stateless coroutines on the policy role's strand. Error kPeerLost, naming the critic, when it is
// lost.
#pragma once

#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/learn/rl/trainer.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::policy {

struct CriticLink {
  std::string peer;     // "critic/0"; "" without a critic
  bool in_turn = true;  // the critic learns before the policy; else both learn at once
};

using TrainGroups = std::shared_ptr<std::vector<experience::Group>>;

// Gets the critic's values for these groups and fills the `values` of every sample.
async::task<core::Result<void>> fetch_values(RoleContext context,
                                             std::string peer,
                                             std::uint64_t update,
                                             TrainGroups groups);

// Sends the returns, in the order of the groups, and has the critic learn.
async::task<core::Result<Trained>> train_critic(RoleContext context,
                                                std::string peer,
                                                std::uint64_t update,
                                                learn::ValueTargets targets);

}  // namespace troupe::actors::policy
