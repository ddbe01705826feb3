#include "runtime/dialects/logprob_json.hpp"

#include "runtime/core/texts.hpp"

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

bool is_utf8(const std::string& bytes) {
  // nlohmann throws for what is no UTF-8.
  try {
    static_cast<void>(Json(bytes).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

// OpenAI's name of a token that is a part of a character: bytes:\xf0\x9f.
std::string name_of_bytes(const std::string& bytes) {
  std::string name = "bytes:";
  for (const char c : bytes)
    name += core::printed("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return name;
}

std::string name_of_id(std::int32_t token) {
  return "token_id:" + std::to_string(token);
}

}  // namespace

std::optional<std::string> LogprobJson::bytes_of(std::int32_t token) const {
  return tokenizer_ ? tokenizer_->bytes_of(token) : std::nullopt;
}

std::string LogprobJson::name_of(std::int32_t token) const {
  if (as_ids_) return name_of_id(token);
  const auto bytes = bytes_of(token);
  if (!bytes) return name_of_id(token);
  return is_utf8(*bytes) ? *bytes : name_of_bytes(*bytes);
}

// A token as a chat shows it: {"token", "logprob", "bytes"}.
Json LogprobJson::entry(std::int32_t token, float logprob) const {
  Json bytes;  // null where nothing says what they are
  if (const auto own = bytes_of(token)) {
    bytes = Json::array();
    for (const char c : *own)
      bytes.push_back(static_cast<unsigned char>(c));
  }
  return {{"token", name_of(token)}, {"logprob", shown(logprob)}, {"bytes", std::move(bytes)}};
}

// {NAME: log-prob} of all tokens of a place, none under the name of another.
Json LogprobJson::alternatives(const ScoredToken& one) const {
  Json out = Json::object();
  const std::string drawn = name_of(one.token);
  bool listed = false;
  for (const engine::TokenLogprob& other : one.top) {
    const bool own = other.token == one.token;
    std::string name = own ? drawn : name_of(other.token);
    if (!own && (name == drawn || out.contains(name))) name = name_of_id(other.token);
    out[name] = shown(own ? *one.logprob : other.logprob);
    listed = listed || own;
  }
  if (!listed) out[drawn] = shown(*one.logprob);
  return out;
}

Json LogprobJson::completion(std::span<const ScoredToken> tokens, std::size_t& offset) const {
  Json names = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const ScoredToken& one : tokens) {
    offsets.push_back(offset);
    names.push_back(name_of(one.token));
    const auto bytes = bytes_of(one.token);
    offset +=
        characters(bytes || tokenizer_ ? bytes.value_or("") : names.back().get<std::string>());
    values.push_back(one.logprob ? Json(shown(*one.logprob)) : Json());
    tops.push_back(one.top.empty() ? Json() : alternatives(one));
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
    const float kept = sample.facts.log_kept_mass.empty() ? 0.0f : sample.facts.log_kept_mass[i];
    const float processed = sample.logprobs[i] - kept;
    for (engine::TokenLogprob& top : std::span(sample.top_logprobs).subspan(i * each, each))
      top.logprob = processed + (top.logprob - raw) / temperature;
    sample.raw_logprobs[i] = processed;
  }
}

}  // namespace troupe::dialects
