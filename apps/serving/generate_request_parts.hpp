// What the readers of completions and chats share. Internal to them.
#pragma once

#include "apps/serving/generate_request.hpp"
#include "apps/serving/json_fields.hpp"
#include "apps/serving/request_json.hpp"

#include <nlohmann/json.hpp>

namespace troupe::app {

// Sampling, limits, streaming and what else both kinds have.
void read_common(JsonFields& fields, const ServeBounds& bounds, GenerateRequest& out);

// Dialogue: roles and texts; parts of type text are joined. Complains of a role that is none and of
// a message without content, which only an answer with tool calls may be. Returns JSON for the
// template.
std::string read_messages(JsonFields& fields, const nlohmann::json& messages);

// A list of token ids; complains of anything else.
std::vector<std::int32_t> read_tokens(JsonFields& fields,
                                      std::string_view name,
                                      const nlohmann::json& list);

}  // namespace troupe::app
