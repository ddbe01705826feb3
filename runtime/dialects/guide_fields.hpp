// Reads the fields by which a request asks for text of a grammar: OpenAI's response_format, and
// vLLM's structured_outputs and guided_json, guided_regex, guided_grammar, guided_choice. Errors go
// to the JsonFields that were given.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/json_fields.hpp"

namespace troupe::dialects {

// Fills `grammar`. At most one of the fields may ask for one.
void read_guide(JsonFields& fields, GenerateRequest& out);

}  // namespace troupe::dialects
