// What higher rooms contribute to the table of keys: the words that a key accepts, and rules
// between keys. The program passes both in when it builds the table, so that this room need not
// include those rooms. Plain values.
#pragma once

#include "runtime/core/choice.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe::config {

struct TrainConfig;

// Nothing when the configuration is fine. A rule sees a configuration whose single values were
// checked already.
using Rule = std::function<std::optional<core::Refusal>(const TrainConfig& config)>;

struct HandedTables {
  std::vector<core::ChoiceTable> choices;  // of keys that have no words of their own in this room
  std::vector<Rule> rules;                 // of reinforcement learning (method ppo)
};

}  // namespace troupe::config
