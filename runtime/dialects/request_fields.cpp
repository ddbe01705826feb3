#include "runtime/dialects/request_fields.hpp"

#include "runtime/text/messages.hpp"

namespace troupe::dialects {

namespace {

// The JSON text of chat_template_kwargs; empty without it.
std::string read_variables(JsonFields& fields) {
  const json* variables = fields.find("chat_template_kwargs");
  if (variables == nullptr) return {};
  if (!variables->is_object()) {
    fields.complain("chat_template_kwargs", "must be an object");
    return {};
  }
  auto read = text::variables_of(*variables);
  if (read) return std::move(*read);
  fields.complain("chat_template_kwargs", read.error().message);
  return {};
}

}  // namespace

void read_template(JsonFields& fields, Dialogue& out) {
  out.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  out.add_special_tokens = fields.boolean("add_special_tokens", false);
  if (fields.boolean("continue_final_message", false))
    fields.complain("continue_final_message", "is not supported by this server");
  if (fields.find("chat_template") != nullptr)
    fields.complain("chat_template", "is the server's and not a request's");
  out.template_variables_json = read_variables(fields);
}

void read_ids(JsonFields& fields, const ServeBounds& bounds, GenerateRequest& out) {
  out.return_token_ids = fields.boolean("return_token_ids", false);
  out.tokens_as_ids = fields.boolean("return_tokens_as_token_ids", bounds.tokens_as_ids);
  out.processed_logprobs = bounds.processed_logprobs;
}

void read_dialogue_logprobs(JsonFields& fields, const ServeBounds& bounds, GenerateRequest& out) {
  out.logprobs = fields.boolean("logprobs", false);
  out.sampling.top_logprobs =
      static_cast<std::int32_t>(fields.integer("top_logprobs", 0, 0, bounds.logprobs_max));
  out.sampling.raw_logprobs = out.logprobs;
  if (out.sampling.top_logprobs > 0 && !out.logprobs)
    fields.complain("top_logprobs", "goes with \"logprobs\": true");
}

}  // namespace troupe::dialects
