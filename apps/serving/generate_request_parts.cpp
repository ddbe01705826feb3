#include "apps/serving/generate_request_parts.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace troupe::app {

using nlohmann::json;

std::vector<std::int32_t> read_tokens(JsonFields& fields, std::string_view name, const json& list) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(list.size());
  for (const json& one : list) {
    if (!one.is_number_integer() || one.get<double>() < 0 || one.get<double>() > INT32_MAX) {
      fields.complain(name, "holds something that is no token id");
      return {};
    }
    tokens.push_back(one.get<std::int32_t>());
  }
  return tokens;
}

namespace {

void read_stops(JsonFields& fields, engine::SamplingParams& out) {
  if (const json* stop = fields.find("stop")) {
    const json list = stop->is_array() ? *stop : json::array({*stop});
    for (const json& one : list) {
      if (!one.is_string()) {
        fields.complain("stop", "must be a string or a list of strings");
        return;
      }
      // An empty one would end everything at once; clients send it for "none".
      if (!one.get_ref<const std::string&>().empty()) out.stop_strings.push_back(one);
    }
  }
  if (const json* tokens = fields.find("stop_token_ids")) {
    if (tokens->is_array()) {
      out.stop_tokens = read_tokens(fields, "stop_token_ids", *tokens);
    } else {
      fields.complain("stop_token_ids", "must be a list of token ids");
    }
  }
}

// {"50256": -100}: OpenAI's form, ids as keys.
void read_bias(JsonFields& fields, engine::SamplingParams& out) {
  const json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) {
    fields.complain("logit_bias", "must be an object of token ids and numbers");
    return;
  }
  std::map<std::int32_t, float> sorted;
  for (const auto& [key, value] : bias->items()) {
    const bool digits =
        !key.empty() && key.size() < 10 &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || !value.is_number()) {
      fields.complain("logit_bias", "must be an object of token ids and numbers");
      return;
    }
    const double amount = value.get<double>();
    if (!(amount >= -100 && amount <= 100)) {
      fields.complain("logit_bias", "of token " + key + " must be between -100 and 100");
      return;
    }
    sorted[std::stoi(key)] = static_cast<float>(amount);
  }
  for (const auto& [token, amount] : sorted)
    out.logit_bias.push_back({token, amount});
}

void read_sampling(JsonFields& fields, engine::SamplingParams& out) {
  out.temperature = static_cast<float>(fields.number("temperature", 1, 0, 1000));
  if (out.temperature > 0 && out.temperature < 1e-3f) {
    fields.complain("temperature", "must be 0 (greedy) or at least 0.001");
  }
  out.top_p = static_cast<float>(fields.number("top_p", 1, 1e-6, 1));
  out.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(
      0, fields.integer("top_k", 0, -1, INT32_MAX)));  // vLLM's -1 is off, too
  out.min_p = static_cast<float>(fields.number("min_p", 0, 0, 1));
  out.presence_penalty = static_cast<float>(fields.number("presence_penalty", 0, -2, 2));
  out.frequency_penalty = static_cast<float>(fields.number("frequency_penalty", 0, -2, 2));
  out.repetition_penalty = static_cast<float>(fields.number("repetition_penalty", 1, 0.01, 100));
  out.min_new_tokens = static_cast<std::int32_t>(fields.integer("min_tokens", 0, 0, INT32_MAX));
  out.ignore_eos = fields.boolean("ignore_eos", false);
  read_stops(fields, out);
  read_bias(fields, out);
}

void read_stream(JsonFields& fields, GenerateRequest& out) {
  out.stream = fields.boolean("stream", false);
  const json* options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) {
    fields.complain("stream_options", "must be an object");
    return;
  }
  if (!out.stream) fields.complain("stream_options", "goes with \"stream\": true");
  JsonFields inner(*options, "stream_options.");
  out.include_usage = inner.boolean("include_usage", false);
  inner.ignore({"include_obfuscation", "continuous_usage_stats"});
  inner.end();
  fields.take_over(inner);
}

// Fields of OpenAI or vLLM that would change the answer and that this server does not have. Values
// that ask for nothing are taken.
void refuse_others(JsonFields& fields) {
  for (const char* name : {"tools",
                           "functions",
                           "function_call",
                           "response_format",
                           "guided_json",
                           "guided_regex",
                           "guided_choice",
                           "guided_grammar",
                           "structured_outputs",
                           "suffix",
                           "use_beam_search",
                           "prompt_embeds",
                           "bad_words",
                           "audio",
                           "modalities",
                           "allowed_token_ids",
                           "truncate_prompt_tokens",
                           "prompt_logprobs",
                           "logits_processors",
                           "reasoning_effort"}) {
    const json* value = fields.find(name);
    if (value == nullptr || value->empty() || *value == json(false)) continue;
    const bool text_format = std::string_view(name) == "response_format" && value->is_object() &&
                             value->value("type", json()) == json("text");
    if (!text_format) fields.complain(name, "is not supported by this server");
  }
  const json* choice = fields.find("tool_choice");
  if (choice != nullptr && *choice != json("none") && *choice != json("auto")) {
    fields.complain("tool_choice", "is not supported by this server");
  }
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention", "parallel_tool_calls", "priority",
                 "request_id", "spaces_between_special_tokens"});
}

}  // namespace

void read_common(JsonFields& fields, const ServeBounds& bounds, GenerateRequest& out) {
  out.model = fields.text("model", "");
  out.n = static_cast<std::int32_t>(fields.integer("n", 1, 1, bounds.n_max));
  if (fields.integer("best_of", out.n, 1, INT32_MAX) != out.n) {
    fields.complain("best_of", "is not supported other than equal to n");
  }
  if (fields.find("seed") != nullptr) {
    out.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, INT64_MIN, INT64_MAX));
  }
  out.skip_special_tokens = fields.boolean("skip_special_tokens", true);
  out.include_stop = fields.boolean("include_stop_str_in_output", false);
  out.sampling.routed_experts = fields.boolean("return_routed_experts", bounds.routed_experts);
  read_sampling(fields, out.sampling);
  read_stream(fields, out);
  refuse_others(fields);
}

namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

// The text of a message; nothing after a complaint. Only an answer that calls tools may lack it.
std::optional<std::string> content_of(JsonFields& fields,
                                      const std::string& name,
                                      const json& message) {
  const std::string where = name + ".content";
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) {
    const auto calls = message.find("tool_calls");
    const bool calls_tools = message["role"] == "assistant" && calls != message.end() &&
                             calls->is_array() && !calls->empty();
    if (calls_tools) return "";
    fields.complain(where, "is missing");
    return std::nullopt;
  }
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array() || found->empty()) {
    fields.complain(where, "must be a string or a list of at least one part");
    return std::nullopt;
  }
  std::string joined;
  for (const json& part : *found) {
    const bool is_text = part.is_object() && part.value("type", json()) == json("text") &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) {
      fields.complain(where, "may hold parts of type text alone");
      return std::nullopt;
    }
    joined += part["text"].get_ref<const std::string&>();
  }
  return joined;
}

}  // namespace

std::string read_messages(JsonFields& fields, const json& messages) {
  json out = json::array();
  if (!messages.is_array() || messages.empty()) {
    fields.complain("messages", "must be a list of at least one message");
    return "";
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string name = "messages[" + std::to_string(i) + "]";
    const json& message = messages[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      fields.complain(name, "must be an object with a role");
      return "";
    }
    const std::string& role = message["role"].get_ref<const std::string&>();
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      fields.complain(name + ".role", "is none of system, developer, user, assistant and tool");
      return "";
    }
    std::optional<std::string> content = content_of(fields, name, message);
    if (!content) return "";
    json plain = message;
    plain["content"] = std::move(*content);
    out.push_back(std::move(plain));
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace troupe::app
