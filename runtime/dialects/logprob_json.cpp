#include "runtime/dialects/logprob_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::dialects {

using Json = nlohmann::ordered_json;

namespace {

// What is shown instead of minus infinity, which JSON does not have.
constexpr float kLeast = -9999.0f;

double shown(float logprob) {
  return static_cast<double>(std::max(logprob, kLeast));
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0u) != 0x80u; }));
}

}  // namespace

std::string LogprobJson::text_of(std::int32_t token) const {
  auto text = tokenizer_->decode(std::span(&token, 1), false);
  return text ? std::move(*text) : std::string();
}

std::string LogprobJson::name_of(std::int32_t token) const {
  return as_ids_ ? "token_id:" + std::to_string(token) : text_of(token);
}

// A token as a chat shows it: {"token", "logprob", "bytes"}.
Json LogprobJson::entry(std::int32_t token, float logprob) const {
  const std::string name = name_of(token);
  Json bytes = Json::array();
  for (const char c : name)
    bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", name}, {"logprob", shown(logprob)}, {"bytes", std::move(bytes)}};
}

Json LogprobJson::completion(std::span<const ScoredToken> tokens, std::size_t& offset) const {
  Json names = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const ScoredToken& one : tokens) {
    const std::string name = name_of(one.token);
    offsets.push_back(offset);
    offset += characters(as_ids_ && tokenizer_ ? text_of(one.token) : name);
    names.push_back(name);
    values.push_back(one.logprob ? Json(shown(*one.logprob)) : Json());
    if (one.top.empty()) {
      tops.push_back(nullptr);
      continue;
    }
    // Tokens with the same text share a key; it shows the most likely of them.
    Json best = Json::object();
    const auto put = [&best](const std::string& key, double value) {
      if (!best.contains(key) || best[key].get<double>() < value) best[key] = value;
    };
    for (const engine::TokenLogprob& other : one.top) {
      if (other.token != one.token) put(name_of(other.token), shown(other.logprob));
      if (other.token == one.token) put(name, shown(*one.logprob));
    }
    put(name, shown(*one.logprob));
    tops.push_back(std::move(best));
  }
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(values)},
          {"tokens", std::move(names)},
          {"top_logprobs", std::move(tops)}};
}

Json LogprobJson::chat(std::span<const ScoredToken> tokens) const {
  Json content = Json::array();
  for (const ScoredToken& one : tokens) {
    Json& made = content.emplace_back(entry(one.token, *one.logprob));
    made["top_logprobs"] = Json::array();
    for (const engine::TokenLogprob& other : one.top)
      made["top_logprobs"].push_back(entry(other.token, other.logprob));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

void process_logprobs(engine::Sample& sample, const engine::SamplingParams& sampling) {
  const float temperature = sampling.temperature > 0 ? sampling.temperature : 1.0f;
  const auto each = static_cast<std::size_t>(sampling.top_logprobs);
  for (std::size_t i = 0; i < sample.raw_logprobs.size(); ++i) {
    const float raw = sample.raw_logprobs[i];
    const float kept = sample.log_kept_mass.empty() ? 0.0f : sample.log_kept_mass[i];
    const float processed = sample.logprobs[i] - kept;
    for (engine::TokenLogprob& top : std::span(sample.top_logprobs).subspan(i * each, each))
      top.logprob = processed + (top.logprob - raw) / temperature;
    sample.raw_logprobs[i] = processed;
  }
}

}  // namespace troupe::dialects
