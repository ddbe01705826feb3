// The rewards of `reward.list`: several rules, Python files, servers, judges and models in one
// configuration, each with a name and a weight. Each is a configuration of its own, whose section
// `reward` has that reward alone. Pure.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <vector>

namespace troupe::config {

struct ListedReward {
  Text name;
  Float weight = 1;
  TrainConfig config;  // with this reward alone; without reward.list
};

// In the order of the list. An item is YAML, `NAME: {rule: math, weight: 0.5}`, or
// `{rule: math, weight: 0.5}`, whose name is that of its rule, file or folder, unless it has a key
// `name`. It takes the keys of the section reward that say what one reward is. Errors (kConfig)
// name the item: no YAML, a key that no item has, a value that its key does not take, two of one
// name, none or several rewards in one item, a broken rule.
core::Result<std::vector<ListedReward>> listed_rewards(const TrainConfig& config);

// The name of the rule, Python file, server, judge or model of a configuration's only reward.
Text name_of_reward(const TrainConfig& config);

}  // namespace troupe::config
