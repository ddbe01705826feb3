// Reads POST /v1/chat/completions.
#include "apps/serving/generate_request_parts.hpp"

#include <algorithm>
#include <array>

namespace troupe::app {

using nlohmann::json;

namespace {

// Names that a template's variables may not take: what the server itself gives it.
constexpr std::array<std::string_view, 12> kReserved = {
    "messages",      "tools",     "add_generation_prompt",
    "chat_template", "documents", "bos_token",
    "eos_token",     "pad_token", "unk_token",
    "tokenize",      "now",       "strftime_now"};

void read_template(JsonFields& fields, GenerateRequest& out) {
  out.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  if (fields.boolean("continue_final_message", false)) {
    fields.complain("continue_final_message", "is not supported by this server");
  }
  if (fields.find("chat_template") != nullptr) {
    fields.complain("chat_template", "is the server's and not a request's");
  }
  const json* variables = fields.find("chat_template_kwargs");
  if (variables == nullptr) return;
  if (!variables->is_object()) {
    fields.complain("chat_template_kwargs", "must be an object");
    return;
  }
  for (const auto& [name, value] : variables->items()) {
    if (std::find(kReserved.begin(), kReserved.end(), name) == kReserved.end()) continue;
    fields.complain("chat_template_kwargs", "may not set '" + name + "'");
    return;
  }
  out.template_variables_json = variables->dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

Read read_chat(const std::string& body, const ServeBounds& bounds) {
  auto parsed = read_object(body, bounds);
  if (auto* bad = std::get_if<ApiError>(&parsed)) return *bad;
  JsonFields fields(std::get<json>(parsed));
  GenerateRequest out;
  out.chat = true;
  read_common(fields, bounds, out);
  if (const json* messages = fields.find("messages")) {
    out.messages_json = read_messages(fields, *messages);
  } else {
    fields.complain("messages", "is missing");
  }
  read_template(fields, out);
  out.add_special_tokens = fields.boolean("add_special_tokens", false);
  if (fields.find("max_tokens") != nullptr) {
    out.max_tokens = fields.integer("max_tokens", 1, 1, INT32_MAX);
  }
  if (fields.find("max_completion_tokens") != nullptr) {  // the newer name wins, as in vLLM
    out.max_tokens = fields.integer("max_completion_tokens", 1, 1, INT32_MAX);
  }
  out.logprobs = fields.boolean("logprobs", false);
  out.sampling.top_logprobs =
      static_cast<std::int32_t>(fields.integer("top_logprobs", 0, 0, bounds.logprobs_max));
  out.sampling.raw_logprobs = out.logprobs;
  if (out.sampling.top_logprobs > 0 && !out.logprobs) {
    fields.complain("top_logprobs", "goes with \"logprobs\": true");
  }
  if (fields.boolean("echo", false)) fields.complain("echo", "is for completions alone");
  fields.end();
  if (fields.error()) return *fields.error();
  return out;
}

}  // namespace troupe::app
