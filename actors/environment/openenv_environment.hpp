// An environment of an OpenEnv server (0.10), one WebSocket connection for each episode. A turn of
// the policy becomes an action by a JSON template, `{"message": "$text"}`, or, without one, by its
// calls of the tool `act`, whose arguments are the action as GET /schema describes it; a turn
// without a call ends the episode. An observation is a user message, or the result of the call. The
// rewards of the turns add up to the score.
//
// A server that is away is tried again until the deadline of `open`, after pauses that double from
// kEnvironmentPause_min; one that is full (CAPACITY_REACHED) likewise, and at once when one of our
// episodes ends. A connection that breaks costs its episode, whose state was the server's. An
// answer that is too long, not JSON or not OpenEnv's costs the episode, too. Used on one strand.
// Bound of the episodes: the server's, and that of their opener.
#pragma once

#include "actors/environment/environment.hpp"

#include <memory>
#include <string>

namespace troupe::actors::environment {

struct OpenEnvOptions {
#define KEYS "actors/environment/environment_keys.def"
#define PART openenv
#include "runtime/config/fill.def"
  // JSON template of what `reset` is given, with $seed, $prompt, $label, $row (all columns).
  std::string reset = R"({"seed": "$seed"})";
  std::string observation;  // field of an observation to show; empty: its only text, or all
};

// Does not connect yet. Error (kConfig): the URL, a template.
core::Result<std::unique_ptr<Environment>> make_openenv_environment(OpenEnvOptions options);

}  // namespace troupe::actors::environment
