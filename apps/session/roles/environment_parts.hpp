// What an environment role is made from, as the sections env and session name it. Plain functions;
// the environment begins to work when its role does.
#pragma once

#include "actors/environment/environment_role.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

namespace troupe::session {

// The section `env` of `form` says what the environment is; limits are those of the run. Errors:
// kConfig naming file or key; those of reading tokenizer and chat template.
core::Result<actors::environment::EnvironmentParts> make_environment(
    const config::TrainConfig& config, const config::TrainConfig& form);

}  // namespace troupe::session
