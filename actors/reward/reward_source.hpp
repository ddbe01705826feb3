// RewardSource, the interface of what scores finished responses: a rule, a Python function, a
// server or a model. A failure of one sample is a missing score with a cause, never a 0. A failure
// of the whole batch is an error, with one of these codes:
//   kPeerLost   the source is away (a server refuses, gives 5xx, 429 or no answer; a worker cannot
//               be started): this says nothing about the samples; the asker waits until it is back
//   kClosed     the worker ended while it scored these samples; it is replaced by the next call
//   kDeadline   the function did not answer in time; its worker is replaced by the next call
//   others      the samples are at fault, or the source is set up wrongly: a retry would not help
// One source is used from one thread at a time; reward_calls.hpp is for those that need none.
#pragma once

#include "actors/protocol/reward_group.hpp"
#include "runtime/config/key_types.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::reward {

using config::Float, config::Int, config::Text, config::Texts;  // of rows of keys

struct RewardScore {
  std::optional<double> value;        // none: the sample cannot be scored
  std::string cause;                  // why it is missing
  std::string extra = {};             // other values of the sample: a JSON object, or ""
  std::vector<StepScore> steps = {};  // in order; empty unless the source scores steps
};

class RewardSource {
 public:
  virtual ~RewardSource() = default;
  virtual std::string name() const = 0;
  // What the source reads besides prompt, response and label.
  virtual RewardReads reads() const { return {}; }
  // One score per sample, in order. `deadline` counts from now.
  virtual core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                                       core::Duration deadline) = 0;
};

}  // namespace troupe::actors::reward
