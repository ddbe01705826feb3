// What higher rooms contribute to the table of keys: the words that a key accepts, and rules
// between keys. The program passes both in when it builds the table, so this room does not depend
// on those rooms. Plain values.
#pragma once

#include "runtime/core/choice.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe::config {

struct TrainConfig;

// A rule between keys; returns nullopt if the configuration is fine. The values of single keys were
// checked before.
using Rule = std::function<std::optional<core::Refusal>(const TrainConfig& config)>;

struct HandedTables {
  std::vector<core::ChoiceTable> choices;  // for keys whose words this room does not define
  std::vector<Rule> rules;
};

}  // namespace troupe::config
