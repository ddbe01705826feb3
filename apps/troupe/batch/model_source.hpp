// A reward model as a source of scores for the commands that score files. Stateless.
#pragma once

#include "actors/reward/reward_source.hpp"
#include "runtime/core/team.hpp"

#include <memory>
#include <string>

namespace troupe::app {

struct ModelSourceOptions {
  std::string name;      // folder or org/name, with a score head
  bool stored = false;   // scores less the model's own mean over its deviation
  bool as_chat = false;  // prompts are chats of column `input_key`
  std::string input_key;
};

// `team` outlives the source. Errors: no such model; kConfig: no score head.
core::Result<std::unique_ptr<actors::RewardSource>> model_source(const ModelSourceOptions& options,
                                                                 core::TeamRunner& team);

}  // namespace troupe::app
