#include "runtime/dialects/sampling_fields.hpp"

#include "runtime/dialects/request_fields.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace troupe::dialects {

std::vector<std::int32_t> read_tokens(JsonFields& fields, std::string_view name, const json& list) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(list.size());
  for (const json& one : list) {
    if (!one.is_number_integer() || one.get<double>() < 0 || one.get<double>() > INT32_MAX) {
      fields.complain(name, "holds something that is not a token id");
      return {};
    }
    tokens.push_back(one.get<std::int32_t>());
  }
  return tokens;
}

namespace {

void read_stops(JsonFields& fields, std::string_view name, engine::SamplingParams& out) {
  if (const json* stop = fields.find(name)) {
    const json list = stop->is_array() ? *stop : json::array({*stop});
    for (const json& one : list) {
      if (!one.is_string()) return fields.complain(name, "must be a string or a list of strings");
      // Skip empty strings: clients send them to mean "none".
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

// Reads logit_bias in OpenAI's format, with token ids as keys: {"50256": -100}.
void read_bias(JsonFields& fields, engine::SamplingParams& out) {
  const json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object())
    return fields.complain("logit_bias", "must be an object of token ids and numbers");
  std::map<std::int32_t, float> sorted;
  for (const auto& [key, value] : bias->items()) {
    const bool digits =
        !key.empty() && key.size() < 10 &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || !value.is_number())
      return fields.complain("logit_bias", "must be an object of token ids and numbers");
    const double amount = value.get<double>();
    if (!(amount >= -100 && amount <= 100))
      return fields.complain("logit_bias", "of token " + key + " must be between -100 and 100");
    sorted[std::stoi(key)] = static_cast<float>(amount);
  }
  for (const auto& [token, amount] : sorted)
    out.logit_bias.push_back({token, amount});
}

void read_params(JsonFields& fields, std::string_view stop_name, engine::SamplingParams& out) {
  out.temperature = fields.number("temperature", 1, 0, 1000);
  if (out.temperature > 0 && out.temperature < 1e-3f)
    fields.complain("temperature", "must be 0 (greedy) or at least 0.001");
  out.top_p = fields.number("top_p", 1, 1e-6, 1);
  out.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(
      0, fields.integer("top_k", 0, -1, INT32_MAX)));  // vLLM's -1 turns it off, too
  out.min_p = fields.number("min_p", 0, 0, 1);
  out.presence_penalty = fields.number("presence_penalty", 0, -2, 2);
  out.frequency_penalty = fields.number("frequency_penalty", 0, -2, 2);
  out.repetition_penalty = fields.number("repetition_penalty", 1, 0.01, 100);
  out.min_new_tokens = static_cast<std::int32_t>(fields.integer("min_tokens", 0, 0, INT32_MAX));
  out.ignore_eos = fields.boolean("ignore_eos", false);
  read_stops(fields, stop_name, out);
  read_bias(fields, out);
}

}  // namespace

void read_sampling(JsonFields& fields,
                   const ServeBounds& bounds,
                   GenerateRequest& out,
                   std::string_view stop_name) {
  out.n = static_cast<std::int32_t>(fields.integer("n", 1, 1, bounds.n_max));
  if (fields.integer("best_of", out.n, 1, INT32_MAX) != out.n)
    fields.complain("best_of", "is not supported other than equal to n");
  if (fields.find("seed") != nullptr)
    out.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, INT64_MIN, INT64_MAX));
  out.skip_special_tokens = fields.boolean("skip_special_tokens", true);
  out.include_stop = fields.boolean("include_stop_str_in_output", false);
  read_params(fields, stop_name, out.sampling);
}

void read_cache(JsonFields& fields, GenerateRequest& out) {
  out.cache_salt = fields.text("cache_salt");
  if (fields.find("cache_salt") != nullptr && out.cache_salt.empty())
    fields.complain("cache_salt", "must be a text that is not empty");
  out.priority = static_cast<std::int32_t>(fields.integer("priority", 0, INT32_MIN, INT32_MAX));
}

void read_sampling_params(JsonFields& fields,
                          const json& params,
                          const ServeBounds& bounds,
                          GenerateRequest& out) {
  if (!params.is_object()) return fields.complain("sampling_params", "must be an object");
  JsonFields inner(params, "sampling_params.");
  read_sampling(inner, bounds, out);
  out.max_tokens = inner.integer("max_tokens", 16, 1, INT32_MAX);
  if (inner.find("logprobs") != nullptr) {
    out.logprobs = out.sampling.raw_logprobs = true;
    out.sampling.top_logprobs =
        static_cast<std::int32_t>(inner.integer("logprobs", 0, 0, bounds.logprobs_max));
  }
  read_guide(inner, out);
  inner.unsupported({"bad_words", "allowed_token_ids", "extra_args", "prompt_logprobs",
                     "truncate_prompt_tokens", "logits_processors"});
  inner.ignore({"detokenize", "spaces_between_special_tokens", "output_kind", "flat_logprobs"});
  inner.end();
  fields.take_over(inner);
}

}  // namespace troupe::dialects
