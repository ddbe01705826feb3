// The messages of OpenEnv's WebSocket (`/ws`), made of episodes and turns and read as such. Pure.
// {"type": "reset" | "step" | "close", "data": {...}} goes out; {"type": "observation", "data":
// {"observation": {...}, "reward", "done"}} or {"type": "error", "data": {"message", "code"}}
// comes.
#pragma once

#include "actors/environment/environment.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::environment {

// What an OpenEnv server says to one message.
struct OpenEnvAnswer {
  nlohmann::json observation;  // an object, without its metadata
  std::optional<double> reward;
  bool done = false;
};

// A template of a JSON object: each text in it that is `$name` and nothing else stands for a value.
// Error (kConfig): it is no JSON object, or names a value that is not in `known`.
core::Result<nlohmann::json> read_template(const std::string& text,
                                           const std::string& key,
                                           const std::vector<std::string>& known);
nlohmann::json filled(const nlohmann::json& form,
                      const std::map<std::string, nlohmann::json>& values);

std::string openenv_message(std::string_view type, const nlohmann::json& data);

// Errors: kOverloaded (CAPACITY_REACHED), kInvalidArgument (VALIDATION_ERROR: the action), kData
// (any other error of the server, by its code and message; the answer is not one of OpenEnv).
core::Result<OpenEnvAnswer> read_openenv_answer(const std::string& text);

// An observation as text: of the field `field`, of its only field that is not empty and a text, or
// as JSON. Error (kData): there is no such field.
core::Result<std::string> observation_text(const nlohmann::json& observation,
                                           const std::string& field);

// The action's schema (of GET /schema) as the one tool of the environment, `act`.
core::Result<nlohmann::json> action_tool(const std::string& schema);
inline constexpr std::string_view kActionTool = "act";

// The arguments of a call as an object. Error (kInvalidArgument): the tool is another, or they are
// none.
core::Result<nlohmann::json> action_of_call(const nlohmann::json& call);

// The row's prompt with the first observation at the end of its last user message.
nlohmann::json openenv_prompt(const EpisodeStart& start, const std::string& observation);

}  // namespace troupe::actors::environment
