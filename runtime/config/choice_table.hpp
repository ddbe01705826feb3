// What rooms above the configuration say about its keys: the words of their choices and the rules
// between their keys. The program hands both over when it puts the table of keys together, so that
// this room includes none of those rooms. Plain values.
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
