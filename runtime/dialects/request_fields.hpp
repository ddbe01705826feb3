// Reads what requests of several APIs have in common. Errors go to the JsonFields that were given.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/json_fields.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <variant>

namespace troupe::dialects {

// Parses a body. `fill(fields, out)` reads its fields, but for the model; a field that `fill` does
// not read is an error.
template <class Out, class Fill>
std::variant<Out, ApiError> read_body(const std::string& body,
                                      const ServeBounds& bounds,
                                      const Fill& fill) {
  auto parsed = read_object(body, bounds);
  if (auto* bad = std::get_if<ApiError>(&parsed)) return *bad;
  JsonFields fields(std::get<nlohmann::ordered_json>(parsed));
  Out out;
  out.model = fields.text("model");
  fill(fields, out);
  fields.end();
  if (fields.error()) return *fields.error();
  return out;
}

// What a request says of the chat template: chat_template_kwargs, add_generation_prompt,
// add_special_tokens (off, since templates write them).
void read_template(JsonFields& fields, Dialogue& out);

// return_token_ids and return_tokens_as_token_ids.
void read_ids(JsonFields& fields, const ServeBounds& bounds, GenerateRequest& out);

// logprobs (true or false) and top_logprobs, as chats have them.
void read_dialogue_logprobs(JsonFields& fields, const ServeBounds& bounds, GenerateRequest& out);

// The fields by which a request asks for text of a grammar: OpenAI's response_format, and vLLM's
// structured_outputs and guided_json, guided_regex, guided_grammar, guided_choice. At most one of
// them may ask for one. Fills `grammar`.
void read_guide(JsonFields& fields, GenerateRequest& out);

}  // namespace troupe::dialects
