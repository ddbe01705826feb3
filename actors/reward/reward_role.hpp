// The reward role: scores finished responses with one source. Batches are scored one after another
// on a device thread of their own (a Python function may block). A batch that hangs or loses its
// worker is tried again (reward_retries.hpp); then its error goes back to the caller, who decides
// what becomes of the group: kPeerLost when the source is away, any other has judged it. A request
// without all columns that the source reads is answered with these. No failure is ever turned into
// a score. Bounds: the deadline, twice for one batch; the device thread's queue.
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

  // Repeated: the source is asked again.
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
