// What a process reward model was trained with, kept in its config.json as the object
// `process_reward`, so that scoring with the model need not state it again. Pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/spec.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::model {

struct ProcessReward {
  std::string placeholder;           // token after each step, as text
  std::vector<std::string> rewards;  // tokens of the choice, the best first; empty: all
  std::string separator;             // between two steps

  friend bool operator==(const ProcessReward&, const ProcessReward&) = default;
};

// Nothing without the key; kData, naming it, when it is malformed.
core::Result<std::optional<ProcessReward>> process_reward_of(const ModelSpec& spec);

// The text of a config.json with the key.
std::string with_process_reward(const std::string& config_json, const ProcessReward& facts);

}  // namespace troupe::model
