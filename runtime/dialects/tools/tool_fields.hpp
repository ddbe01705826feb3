// Reads what a chat says of tools, and makes the messages that a template gets of it. Names are
// OpenAI's. Errors go to the JsonFields that were given, whose bounds are those of the lists.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/json_fields.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace troupe::dialects {

// tools, tool_choice and parallel_tool_calls.
void read_tools(JsonFields& fields, GenerateRequest& out);

// Checks the calls of an assistant's message, and replaces the text of their arguments by the
// object that it holds, which is what templates read. `where` names the message in errors.
void read_calls(JsonFields& fields, const std::string& where, nlohmann::ordered_json& message);

}  // namespace troupe::dialects
