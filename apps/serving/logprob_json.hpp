// Log-probs in the two forms of OpenAI's API, built token by token. Values are at temperature 1, of
// the whole vocabulary. Without a tokenizer a token's text is "token_id:5". Used while an answer is
// built, on its strand.
#pragma once

#include "runtime/engine/types.hpp"
#include "runtime/text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::app {

// One token of a sequence: without a log-prob when it is the first of a prompt.
struct ScoredToken {
  std::int32_t token = 0;
  std::optional<float> logprob;
  std::span<const engine::TokenLogprob> top;
};

// {"text_offset": [], "tokens": [], "token_logprobs": [], "top_logprobs": []}. Offsets count
// characters from `offset` on. `top`: null where no alternatives were asked for.
class CompletionLogprobs {
 public:
  CompletionLogprobs(const std::optional<text::Tokenizer>& tokenizer,
                     std::int32_t top,
                     std::size_t offset);
  void add(const ScoredToken& one);
  nlohmann::ordered_json take();
  std::size_t offset() const noexcept { return offset_; }

 private:
  const std::optional<text::Tokenizer>& tokenizer_;
  const std::int32_t top_;
  std::size_t offset_;
  nlohmann::ordered_json tokens_, values_, tops_, offsets_;
};

// {"content": [{"token", "logprob", "bytes", "top_logprobs": [...]}], "refusal": null}.
class ChatLogprobs {
 public:
  ChatLogprobs(const std::optional<text::Tokenizer>& tokenizer, std::int32_t top);
  void add(const ScoredToken& one);
  nlohmann::ordered_json take();

 private:
  nlohmann::ordered_json entry(std::int32_t token, float logprob) const;
  const std::optional<text::Tokenizer>& tokenizer_;
  const std::int32_t top_;
  nlohmann::ordered_json content_ = nlohmann::ordered_json::array();
};

}  // namespace troupe::app
