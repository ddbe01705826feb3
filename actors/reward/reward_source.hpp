// A source of rewards: something that scores finished responses. A failure of one item is a missing
// score with a cause, never a 0; a failure of the whole batch is an error that the role may retry.
// One source is used from one thread at a time (the reward role's own).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

namespace troupe::actors {

struct RewardItem {
  std::string prompt;    // as the model saw it
  std::string response;  // decoded text of the sampled tokens, special tokens left out
  std::string label;     // the dataset's label column, "" when there is none
  std::string columns;   // the dataset row as one JSON object
};

struct RewardScore {
  std::optional<double> value;  // missing: the sample cannot be scored
  std::string cause;            // why it is missing
};

class RewardSource {
 public:
  virtual ~RewardSource() = default;
  virtual std::string name() const = 0;
  // One score per item, in order. `deadline` counts from now.
  virtual core::Result<std::vector<RewardScore>> score(const std::vector<RewardItem>& items,
                                                       core::Duration deadline) = 0;
};

}  // namespace troupe::actors
