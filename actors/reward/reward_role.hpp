// The reward role: scores finished responses with one source. Batches are scored one after another on
// a device thread of their own (a Python function may block). A batch that fails is tried again up to
// kRewardRetries_max times; then its error goes back to the caller, who decides what becomes of the
// group. No failure is ever turned into a score.
#pragma once

#include <memory>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "actors/reward/reward_source.hpp"

namespace troupe::actors {

class RewardRole {
 public:
  RewardRole(RoleContext context, std::unique_ptr<RewardSource> source);
  async::task<core::Result<Scores>> on(Score request);

 private:
  RoleContext context_;
  std::shared_ptr<RewardSource> source_;  // used on the device thread alone
};

}  // namespace troupe::actors
