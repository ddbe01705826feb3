// The reward role scores finished responses with one source. It scores batches one after another on
// its device thread, where a Python function or a server may block. It retries a batch that hangs
// or loses its worker (reward_retries.hpp); then the caller gets the error and decides about the
// group: kPeerLost means that the source is away, any other error is final. If a request lacks
// columns that the source reads, the answer names them. No failure ever becomes a score. Bounds:
// two deadlines for a batch that hangs; the device thread's queue.
#pragma once

#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"
#include "actors/reward/reward_retries.hpp"
#include "actors/reward/reward_source.hpp"
#include "runtime/wire/role_report.hpp"

#include <memory>

namespace troupe::actors {

class RewardRole {
 public:
  // `deadline`: of one call of the source.
  RewardRole(RoleContext context, std::unique_ptr<RewardSource> source, core::Duration deadline)
      : context_(std::move(context)), source_(std::move(source)), deadline_(deadline) {}

  // For a repeated request the source scores again.
  async::task<core::Result<Scores>> on(Score request);

  // Counts for `status`.
  wire::Amounts amounts() const;

 private:
  RoleContext context_;
  std::shared_ptr<RewardSource> source_;  // used on the device thread alone
  const core::Duration deadline_;
  RewardTries tries_;
  std::uint64_t scored_ = 0, missing_ = 0;  // samples
  std::uint64_t failed_batches_ = 0;
};

}  // namespace troupe::actors
