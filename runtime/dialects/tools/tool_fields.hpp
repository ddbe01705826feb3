// Reads what a chat says of tools, and makes the messages that a template gets of it. Names are
// OpenAI's. Errors go to the JsonFields that were given, whose bounds are those of the lists.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/json_fields.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe::dialects {

// What a request says of whether tools are to be called.
struct ToolChoice {
  enum class Kind { kAuto, kNone, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name{};  // of kNamed: the tool that is to be called
};

// tools, tool_choice and parallel_tool_calls.
void read_tools(JsonFields& fields, Dialogue& out);

// Takes `tools`, OpenAI's list of them with names that were checked, and what `choice` makes of
// them. `field` names the choice in errors. The one place where a forced call is decided.
void take_tools(JsonFields& fields,
                const std::string& field,
                const ToolChoice& choice,
                const nlohmann::ordered_json& tools,
                Dialogue& out);

// Adds the name of a tool to those of `out`; complains about an empty or repeated one.
bool add_tool_name(JsonFields& fields,
                   const std::string& where,
                   const nlohmann::ordered_json& holder,
                   Dialogue& out);

}  // namespace troupe::dialects
