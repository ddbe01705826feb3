// The reward role scores finished responses with one reward, many groups at a time as far as the
// reward can (reward_calls.hpp). It retries a batch that hangs or loses its worker
// (reward_retries.hpp); then the caller gets the error and decides about the group: kPeerLost means
// that the reward is away, any other error is final. If a request lacks columns that the reward
// reads, it was replaced, and is as good as away until it is introduced again. No failure ever
// becomes a score. Bounds: the role's inbox; two deadlines for a batch that hangs, from when it is
// being scored.
#pragma once

#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"
#include "actors/reward/reward_calls.hpp"
#include "actors/reward/reward_retries.hpp"
#include "runtime/wire/role_report.hpp"

#include <memory>

namespace troupe::actors::reward {

class RewardRole {
 public:
  // `deadline`: of one try of a batch.
  RewardRole(RoleContext context, std::unique_ptr<RewardCalls> calls, core::Duration deadline);
  // A source that scores on the device thread (queued_reward.hpp).
  RewardRole(RoleContext context, std::unique_ptr<RewardSource> source, core::Duration deadline);

  async::task<core::Result<RewardReads>> on(IntroduceReward);
  // For a repeated request the reward scores again.
  async::task<core::Result<Scores>> on(Score request);

  // Counts for `status`.
  wire::Amounts amounts() const;

 private:
  RoleContext context_;
  const std::unique_ptr<RewardCalls> calls_;
  const core::Duration deadline_;
  RewardTries tries_;
  std::uint64_t open_ = 0;                  // groups that are being scored, or wait for it
  std::uint64_t scored_ = 0, missing_ = 0;  // samples
  std::uint64_t failed_batches_ = 0;
};

}  // namespace troupe::actors::reward
