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

}  // namespace

CompletionLogprobs::CompletionLogprobs(const std::optional<text::Tokenizer>& tokenizer,
                                       std::int32_t top,
                                       std::size_t offset)
    : tokenizer_(tokenizer),
      top_(top),
      offset_(offset),
      tokens_(Json::array()),
      values_(Json::array()),
      tops_(Json::array()),
      offsets_(Json::array()) {}

void CompletionLogprobs::add(const ScoredToken& one) {
  const std::string text = text_of(tokenizer_, one.token);
  offsets_.push_back(offset_);
  offset_ += characters(text);
  tokens_.push_back(text);
  if (!one.logprob) {
    values_.push_back(nullptr);
    tops_.push_back(nullptr);
    return;
  }
  values_.push_back(shown(*one.logprob));
  if (top_ == 0) {
    tops_.push_back(nullptr);
    return;
  }
  // Tokens with the same text share a key: the likeliest of them stays, as a client that looks for
  // the best alternative expects.
  Json best = Json::object();
  const auto put = [&best](const std::string& key, double value) {
    if (!best.contains(key) || best[key].get<double>() < value) best[key] = value;
  };
  for (const engine::TokenLogprob& other : one.top) {
    if (other.token != one.token) put(text_of(tokenizer_, other.token), shown(other.logprob));
    if (other.token == one.token) put(text, shown(*one.logprob));
  }
  put(text, shown(*one.logprob));
  tops_.push_back(std::move(best));
}

Json CompletionLogprobs::take() {
  Json out = {{"text_offset", std::exchange(offsets_, Json::array())},
              {"token_logprobs", std::exchange(values_, Json::array())},
              {"tokens", std::exchange(tokens_, Json::array())},
              {"top_logprobs", std::exchange(tops_, Json::array())}};
  return out;
}

ChatLogprobs::ChatLogprobs(const std::optional<text::Tokenizer>& tokenizer, std::int32_t top)
    : tokenizer_(tokenizer), top_(top) {}

Json ChatLogprobs::entry(std::int32_t token, float logprob) const {
  const std::string text = text_of(tokenizer_, token);
  Json bytes = Json::array();
  for (const char c : text)
    bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", shown(logprob)}, {"bytes", std::move(bytes)}};
}

void ChatLogprobs::add(const ScoredToken& one) {
  Json made = entry(one.token, one.logprob.value_or(kLeast));
  made["top_logprobs"] = Json::array();
  for (const engine::TokenLogprob& other : one.top)
    made["top_logprobs"].push_back(entry(other.token, other.logprob));
  content_.push_back(std::move(made));
}

Json ChatLogprobs::take() {
  Json out;
  out["content"] = std::exchange(content_, Json::array());
  out["refusal"] = nullptr;
  return out;
}

}  // namespace troupe::app
