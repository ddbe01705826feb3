// Reads the bodies of POST /v1/completions, /v1/chat/completions, /tokenize and /detokenize.
#include "runtime/dialects/generate_request.hpp"

#include "runtime/dialects/json_fields.hpp"
#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/request_fields.hpp"
#include "runtime/dialects/sampling_fields.hpp"
#include "runtime/dialects/tools/tool_fields.hpp"
#include "runtime/text/messages.hpp"

#include <algorithm>
#include <array>

namespace troupe::dialects {

namespace {

void read_stream(JsonFields& fields, GenerateRequest& out) {
  out.stream = fields.boolean("stream", false);
  const json* options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return fields.complain("stream_options", "must be an object");
  if (!out.stream) fields.complain("stream_options", "goes with \"stream\": true");
  JsonFields inner(*options, "stream_options.");
  out.include_usage = inner.boolean("include_usage", false);
  inner.ignore({"include_obfuscation", "continuous_usage_stats"});
  inner.end();
  fields.take_over(inner);
}

// Refuses fields of OpenAI or vLLM that would change the answer and that this server lacks. Values
// without effect are accepted.
void refuse_others(JsonFields& fields) {
  for (const char* name :
       {"functions", "function_call", "suffix", "use_beam_search", "prompt_embeds", "bad_words",
        "audio", "modalities", "allowed_token_ids", "truncate_prompt_tokens", "prompt_logprobs",
        "logits_processors", "reasoning_effort"}) {
    const json* value = fields.find(name);
    if (value == nullptr || value->empty() || *value == json(false)) continue;
    fields.complain(name, "is not supported by this server");
  }
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention", "request_id",
                 "spaces_between_special_tokens"});
}

// Reads the fields that completions and chats share: sampling, limits, streaming.
void read_common(JsonFields& fields, const ServeBounds& bounds, GenerateRequest& out) {
  read_sampling(fields, bounds, out);
  read_guide(fields, out);
  read_cache(fields, out);
  read_ids(fields, bounds, out);
  out.sampling.routed_experts = fields.boolean("return_routed_experts", bounds.routed_experts);
  read_stream(fields, out);
  refuse_others(fields);
}

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

// Checks the messages of a chat, and returns them as JSON for the chat template.
std::string read_messages(JsonFields& fields, const json& messages) {
  if (!messages.is_array() || messages.empty()) {
    fields.complain("messages", "must be a list of at least one message");
    return "";
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string name = "messages[" + std::to_string(i) + "]";
    if (const auto fault = text::check_message(messages[i])) {
      fields.complain(name + fault->field, fault->why);
      return "";
    }
    const std::string& role = messages[i]["role"].get_ref<const std::string&>();
    if (std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end()) continue;
    fields.complain(name + ".role", "is none of system, developer, user, assistant and tool");
    return "";
  }
  return json_text(messages);
}

// Reads `prompt`: a string, a list of strings, a list of token ids, or a list of lists of token
// ids.
void read_prompts(JsonFields& fields, GenerateRequest& out) {
  const json* prompt = fields.find("prompt");
  if (prompt == nullptr) return fields.complain("prompt", "is missing");
  constexpr const char* kForms =
      "must be a string, a list of strings, a list of token ids or a "
      "list of lists of token ids";
  if (prompt->is_string()) {
    out.prompts.emplace_back(prompt->get<std::string>());
    return;
  }
  if (!prompt->is_array() || prompt->empty()) return fields.complain("prompt", kForms);
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
      return fields.complain("prompt", kForms);
    }
  }
}

}  // namespace

Read read_completion(const std::string& body, const ServeBounds& bounds) {
  return read_body<GenerateRequest>(body, bounds, [&](JsonFields& fields, GenerateRequest& out) {
    read_common(fields, bounds, out);
    read_prompts(fields, out);
    out.max_tokens = fields.integer("max_tokens", 16, 0, INT32_MAX);
    out.echo = fields.boolean("echo", false);
    out.add_special_tokens = fields.boolean("add_special_tokens", true);
    if (*out.max_tokens == 0 && !out.echo)
      fields.complain("max_tokens", "is 0, which goes with \"echo\": true");
    const json* logprobs = fields.find("logprobs");
    if (logprobs != nullptr && *logprobs != json(false)) {
      out.logprobs = true;
      out.sampling.top_logprobs =
          static_cast<std::int32_t>(fields.integer("logprobs", 0, 0, bounds.logprobs_max));
      out.sampling.raw_logprobs = true;
      out.sampling.prompt_logprobs = out.echo;
    }
    if (out.echo && out.stream && out.logprobs) {
      fields.complain("stream",
                      "with echo and logprobs is not supported; ask for the whole answer");
    }
    if (out.echo && out.n > 1 && out.logprobs)
      fields.complain("n", "above 1 with echo and logprobs is not supported; ask for each alone");
  });
}

Read read_chat(const std::string& body, const ServeBounds& bounds) {
  return read_body<GenerateRequest>(body, bounds, [&](JsonFields& fields, GenerateRequest& out) {
    out.dialect = Dialect::kChat;
    read_common(fields, bounds, out);
    if (const json* messages = fields.find("messages")) {
      out.messages_json = read_messages(fields, *messages);
    } else {
      fields.complain("messages", "is missing");
    }
    read_tools(fields, out);
    read_template(fields, out);
    if (fields.find("max_tokens") != nullptr)
      out.max_tokens = fields.integer("max_tokens", 1, 1, INT32_MAX);
    if (fields.find("max_completion_tokens") != nullptr) {  // the newer name wins, as in vLLM
      out.max_tokens = fields.integer("max_completion_tokens", 1, 1, INT32_MAX);
    }
    read_dialogue_logprobs(fields, bounds, out);
    if (fields.boolean("echo", false)) fields.complain("echo", "is for completions alone");
  });
}

Read read_token_generate(const std::string& body, const ServeBounds& bounds) {
  return read_body<GenerateRequest>(body, bounds, [&](JsonFields& fields, GenerateRequest& out) {
    out.dialect = Dialect::kTokens;
    out.return_token_ids = fields.boolean("return_token_ids", false);
    out.tokens_as_ids = true;
    out.request_id = fields.text("request_id");
    out.sampling.routed_experts = fields.boolean("return_routed_experts", bounds.routed_experts);
    out.max_tokens = 16;
    const json* tokens = fields.find("token_ids");
    if (tokens == nullptr || !tokens->is_array()) {
      fields.complain("token_ids", "must be a list of token ids");
    } else {
      out.prompts.emplace_back(read_tokens(fields, "token_ids", *tokens));
    }
    if (const json* params = fields.find("sampling_params"))
      read_sampling_params(fields, *params, bounds, out);
    read_cache(fields, out);
    read_stream(fields, out);
    fields.unsupported({"features", "content_parts", "kv_transfer_params"});
  });
}

std::variant<TokenizeRequest, ApiError> read_tokenize(const std::string& body,
                                                      const ServeBounds& bounds) {
  return read_body<TokenizeRequest>(body, bounds, [](JsonFields& fields, TokenizeRequest& out) {
    if (const json* messages = fields.find("messages")) {
      out.messages_json = read_messages(fields, *messages);
      read_tools(fields, out);
      read_template(fields, out);
    } else if (fields.find("prompt") != nullptr) {
      out.prompt = fields.text("prompt");
      out.add_special_tokens = fields.boolean("add_special_tokens", true);
      fields.ignore({"add_generation_prompt"});
    } else {
      fields.complain("prompt", "is missing");
    }
    out.token_strings = fields.boolean("return_token_strs", false);
  });
}

std::variant<TokenizeRequest, ApiError> read_detokenize(const std::string& body,
                                                        const ServeBounds& bounds) {
  return read_body<TokenizeRequest>(body, bounds, [](JsonFields& fields, TokenizeRequest& out) {
    const json* tokens = fields.find("tokens");
    if (tokens == nullptr || !tokens->is_array()) {
      fields.complain("tokens", "must be a list of token ids");
    } else {
      out.tokens = read_tokens(fields, "tokens", *tokens);
    }
  });
}

}  // namespace troupe::dialects
