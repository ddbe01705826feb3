// The sets of held-out prompts of a run: the one of `eval.dataset`, which has no name, and those of
// `eval.sets`. Each is a configuration of its own, whose eval.dataset and section `reward` are the
// set's. Pure.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <vector>

namespace troupe::config {

struct HeldOutSet {
  Text name;                 // "" for that of eval.dataset
  TrainConfig config;        // with the set's dataset, columns and rewards; without eval.sets
  bool own_rewards = false;  // else the run's rewards score it
};

// The set of eval.dataset first, then those of eval.sets in order. An item of eval.sets is YAML,
// `NAME: {dataset: FILE, ...}`, with the keys `dataset`, `label_key`, `input_key` and those of the
// section reward. Errors (kConfig) name the set: no YAML, no dataset, a key that no set has, a
// value that its key does not take, two sets of one name, rewards that break a rule.
core::Result<std::vector<HeldOutSet>> eval_sets(const TrainConfig& config);

}  // namespace troupe::config
