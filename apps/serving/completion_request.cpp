// Reads POST /v1/completions, /tokenize and /detokenize.
#include "apps/serving/generate_request_parts.hpp"

namespace troupe::app {

using nlohmann::json;

namespace {

// A string, a list of strings, a list of token ids, a list of lists of them.
void read_prompts(JsonFields& fields, GenerateRequest& out) {
  const json* prompt = fields.find("prompt");
  if (prompt == nullptr) {
    fields.complain("prompt", "is missing");
    return;
  }
  constexpr const char* kForms =
      "must be a string, a list of strings, a list of token ids or a "
      "list of lists of token ids";
  if (prompt->is_string()) {
    out.prompts.emplace_back(prompt->get<std::string>());
    return;
  }
  if (!prompt->is_array() || prompt->empty()) {
    fields.complain("prompt", kForms);
    return;
  }
  if ((*prompt)[0].is_number()) {
    out.prompts.emplace_back(read_tokens(fields, "prompt", *prompt));
    return;
  }
  for (const json& one : *prompt) {
    if (one.is_string()) {
      out.prompts.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      out.prompts.emplace_back(read_tokens(fields, "prompt", one));
    } else {
      fields.complain("prompt", kForms);
      return;
    }
  }
}

}  // namespace

Read read_completion(const std::string& body, const ServeBounds& bounds) {
  auto parsed = read_object(body, bounds);
  if (auto* bad = std::get_if<ApiError>(&parsed)) return *bad;
  JsonFields fields(std::get<json>(parsed));
  GenerateRequest out;
  read_common(fields, bounds, out);
  read_prompts(fields, out);
  out.max_tokens = fields.integer("max_tokens", 16, 0, INT32_MAX);
  out.echo = fields.boolean("echo", false);
  out.add_special_tokens = fields.boolean("add_special_tokens", true);
  if (*out.max_tokens == 0 && !out.echo) {
    fields.complain("max_tokens", "is 0, which goes with \"echo\": true");
  }
  const json* logprobs = fields.find("logprobs");
  if (logprobs != nullptr && *logprobs != json(false)) {
    out.logprobs = true;
    out.sampling.top_logprobs =
        static_cast<std::int32_t>(fields.integer("logprobs", 0, 0, bounds.logprobs_max));
    out.sampling.raw_logprobs = true;
    out.sampling.prompt_logprobs = out.echo;
  }
  if (out.echo && out.stream && out.logprobs) {
    fields.complain("stream", "with echo and logprobs is not supported; ask for the whole answer");
  }
  if (out.echo && out.n > 1 && out.logprobs) {
    fields.complain("n", "above 1 with echo and logprobs is not supported; ask for each alone");
  }
  fields.end();
  if (fields.error()) return *fields.error();
  return out;
}

std::variant<TokenizeRequest, ApiError> read_tokenize(const std::string& body,
                                                      const ServeBounds& bounds) {
  auto parsed = read_object(body, bounds);
  if (auto* bad = std::get_if<ApiError>(&parsed)) return *bad;
  JsonFields fields(std::get<json>(parsed));
  TokenizeRequest out;
  out.model = fields.text("model", "");
  if (const json* messages = fields.find("messages")) {
    out.messages_json = read_messages(fields, *messages);
    out.add_special_tokens = fields.boolean("add_special_tokens", false);
  } else if (fields.find("prompt") != nullptr) {
    out.prompt = fields.text("prompt", "");
    out.add_special_tokens = fields.boolean("add_special_tokens", true);
  } else {
    fields.complain("prompt", "is missing");
  }
  out.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  out.token_strings = fields.boolean("return_token_strs", false);
  fields.end();
  if (fields.error()) return *fields.error();
  return out;
}

std::variant<TokenizeRequest, ApiError> read_detokenize(const std::string& body,
                                                        const ServeBounds& bounds) {
  auto parsed = read_object(body, bounds);
  if (auto* bad = std::get_if<ApiError>(&parsed)) return *bad;
  JsonFields fields(std::get<json>(parsed));
  TokenizeRequest out;
  out.model = fields.text("model", "");
  const json* tokens = fields.find("tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    fields.complain("tokens", "must be a list of token ids");
  } else {
    out.tokens = read_tokens(fields, "tokens", *tokens);
  }
  fields.end();
  if (fields.error()) return *fields.error();
  return out;
}

}  // namespace troupe::app
