// RewardCalls, the interface of a reward that scores several batches at a time: a server, a pool of
// workers, or a RewardSource whose waiting batches are joined (queued_reward.hpp). A call is a
// coroutine; all calls of one object are made on one strand. The codes of errors are those of
// RewardSource. Bound of the calls: set by the callers.
#pragma once

#include "actors/protocol/role_shell.hpp"
#include "actors/reward/reward_source.hpp"
#include "runtime/wire/role_report.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::reward {

class RewardCalls {
 public:
  using Answer = core::Result<std::vector<RewardScore>>;

  virtual ~RewardCalls() = default;
  virtual std::string name() const = 0;
  // What it reads besides prompt, response and label.
  virtual RewardReads reads() const { return {}; }
  // Columns of the dataset without which it cannot be called.
  virtual std::vector<std::string> needs() const { return {}; }
  // Called once, before the first call, with what the calls run on: scope, timers, device queue.
  virtual void begin(const RoleContext& context) = 0;
  // One score per sample, in order. `deadline`: of a try, from when the batch is being scored.
  virtual async::task<Answer> score(std::vector<RewardGroup> groups, core::Duration deadline) = 0;
  // The files that its code has loaded besides its own, as JSON with SHA-256; "" when that has
  // not changed since it was last taken.
  virtual std::string take_modules() { return {}; }
  // Counts for `status`.
  virtual wire::Amounts amounts() const { return {}; }
};

}  // namespace troupe::actors::reward
