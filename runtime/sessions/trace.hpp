// The calls of an episode as a training trace in OpenEnv's form (openenv.core.harness.training,
// schema version 1): for each call its prompt and what was drawn as token ids, a log-prob for each
// drawn token, and a mask over both. Pure; any thread.
#pragma once

#include "runtime/experience/group.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace troupe::sessions {

// {"schema_version": 1, "turns": [...]}, one turn for each turn of the samples, which are those of
// one episode, behind `prompt`. Ids of calls begin with `name`. The metadata of a turn has the
// versions that drew it as [version, tokens] pairs, and its reward if it has one.
nlohmann::ordered_json training_trace(const std::string& name,
                                      std::span<const std::int32_t> prompt,
                                      std::span<const experience::Trajectory> samples);

}  // namespace troupe::sessions
