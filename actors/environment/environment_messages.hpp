// The lines between an environment and its Python workers (environment_worker.py), as JSON, and the
// checks of what any environment says. Pure.
#pragma once

#include "actors/environment/environment.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace troupe::actors::environment {

std::string open_request(std::uint64_t id, std::uint64_t episode, const EpisodeStart& start);
std::string step_request(std::uint64_t id, std::uint64_t episode, const PolicyTurn& turn);
std::string finish_request(std::uint64_t id, std::uint64_t episode);
std::string cancel_request(std::uint64_t id, std::uint64_t late);
std::string close_notice(std::uint64_t episode);

// The turn in a worker's reply, {"turn": {...}} or {"error": text}. `where`: "environment FILE".
// Errors (kData): the environment raised, with the end of the traceback; the reply is no turn.
core::Result<EnvironmentTurn> read_turn_reply(const nlohmann::json& reply,
                                              const std::string& where);

// An object {"messages" | "text", "tools", "reward", "score", "done", "extras"} as a turn; what is
// absent or null is not said. Error (kData): a value of the wrong type, a number that is not
// finite, messages that are no list of objects with a role, more than kRewardExtras_max extras.
core::Result<EnvironmentTurn> read_turn(const nlohmann::json& said);

// The objects of an assistant message's "tool_calls"; empty when it has none, or is no JSON.
nlohmann::json tool_calls_of(const PolicyTurn& turn);

}  // namespace troupe::actors::environment
