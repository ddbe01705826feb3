#include "apps/serving/logprob_json.hpp"

#include <algorithm>

namespace troupe::app {

using Json = nlohmann::ordered_json;

namespace {

// JSON has no infinity.
constexpr float kLeast = -9999.0f;

double shown(float logprob) {
  return static_cast<double>(std::max(logprob, kLeast));
}

std::string text_of(const std::optional<text::Tokenizer>& tokenizer, std::int32_t token) {
  if (!tokenizer) return "token_id:" + std::to_string(token);
  auto text = tokenizer->decode(std::span(&token, 1), false);
  return text ? std::move(*text) : std::string();
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0u) != 0x80u; }));
}

// {"token", "logprob", "bytes"} of a chat.
Json chat_entry(const std::optional<text::Tokenizer>& tokenizer,
                std::int32_t token,
                float logprob) {
  const std::string text = text_of(tokenizer, token);
  Json bytes = Json::array();
  for (const char c : text)
    bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", shown(logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

Json completion_logprobs(const std::optional<text::Tokenizer>& tokenizer,
                         std::span<const ScoredToken> tokens,
                         std::size_t& offset) {
  Json texts = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const ScoredToken& one : tokens) {
    const std::string text = text_of(tokenizer, one.token);
    offsets.push_back(offset);
    offset += characters(text);
    texts.push_back(text);
    values.push_back(one.logprob ? Json(shown(*one.logprob)) : Json());
    if (one.top.empty()) {
      tops.push_back(nullptr);
      continue;
    }
    // Tokens with the same text share a key: the likeliest of them stays, as a client that looks
    // for the best alternative expects.
    Json best = Json::object();
    const auto put = [&best](const std::string& key, double value) {
      if (!best.contains(key) || best[key].get<double>() < value) best[key] = value;
    };
    for (const engine::TokenLogprob& other : one.top) {
      if (other.token != one.token) put(text_of(tokenizer, other.token), shown(other.logprob));
      if (other.token == one.token) put(text, shown(*one.logprob));
    }
    put(text, shown(*one.logprob));
    tops.push_back(std::move(best));
  }
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(values)},
          {"tokens", std::move(texts)},
          {"top_logprobs", std::move(tops)}};
}

Json chat_logprobs(const std::optional<text::Tokenizer>& tokenizer,
                   std::span<const ScoredToken> tokens) {
  Json content = Json::array();
  for (const ScoredToken& one : tokens) {
    Json& made = content.emplace_back(chat_entry(tokenizer, one.token, *one.logprob));
    made["top_logprobs"] = Json::array();
    for (const engine::TokenLogprob& other : one.top)
      made["top_logprobs"].push_back(chat_entry(tokenizer, other.token, other.logprob));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace troupe::app
