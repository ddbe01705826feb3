// What an environment role is made from, as the sections env and session name it. Plain functions;
// the environment begins to work when its role does.
#pragma once

#include "actors/environment/environment_role.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

namespace troupe::session {

// Sets the keys of `to` that say what the environment is to those of `from`; limits stay.
template <class Env>
void take_form(const Env& from, Env& to) {
  to.python = from.python;
  to.command = from.command;
  to.openenv = from.openenv;
  to.listen = from.listen;
  to.listen_key = from.listen_key;
  to.open = from.open;
  to.attached = from.attached;
  to.action = from.action;
  to.workers = from.workers;
  to.interpreter = from.interpreter;
  to.confined = from.confined;
}

// Errors: kConfig naming file or key; those of reading tokenizer and chat template.
core::Result<actors::environment::EnvironmentParts> make_environment(
    const config::TrainConfig& config);

}  // namespace troupe::session
