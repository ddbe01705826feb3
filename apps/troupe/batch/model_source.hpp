// A reward model as a source of scores for the commands that score files. Stateless.
#pragma once

#include "actors/reward/reward_source.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/prompt_dataset.hpp"

#include <memory>
#include <string>

namespace troupe::app {

// `name`: a folder or org/name, with a score head. `stored`: scores less the model's own mean over
// its deviation. `columns`: how prompts were read from their rows. `team` outlives the source.
// Errors: no such model; kConfig: no score head.
core::Result<std::unique_ptr<actors::RewardSource>> model_source(const std::string& name,
                                                                 bool stored,
                                                                 data::DatasetColumns columns,
                                                                 core::TeamRunner& team);

}  // namespace troupe::app
