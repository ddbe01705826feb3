// The log-probs of an answer in OpenAI's two formats. Immutable; any thread.
#pragma once

#include "runtime/engine/types.hpp"
#include "runtime/text/tokenizer.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::dialects {

// One token of a sequence with its log-prob, which is that at temperature 1, over the whole
// vocabulary, unless it was processed. The first
// token of a prompt has none.
struct ScoredToken {
  std::int32_t token = 0;
  std::optional<float> logprob{};
  std::span<const engine::TokenLogprob> top{};  // most likely tokens there; empty if not asked for
};

// Puts in the place of a sample's log-probs at temperature 1 those that vLLM calls processed: at
// the temperature, of what truncation and a guide left to be drawn. Penalties and biases are not in
// them. The sample must report its kept mass where something was kept from it.
void process_logprobs(engine::Sample& sample, const engine::SamplingParams& sampling);

class LogprobJson {
 public:
  // `tokenizer` outlives this object. A token is called by its text, one that is a part of a
  // character by its bytes, as OpenAI does ("bytes:\\xf0\\x9f"); "token_id:5" without a tokenizer,
  // `as_ids`, for an id that the tokenizer does not know, and next to another token of that text.
  LogprobJson(const std::optional<text::Tokenizer>& tokenizer, bool as_ids)
      : tokenizer_(tokenizer), as_ids_(as_ids || !tokenizer) {}

  // For a completion: {"text_offset": [], "tokens": [], "token_logprobs": [], "top_logprobs": []}.
  // `offset` is the position of the first token in the text, in characters; it becomes the position
  // after the last token. "top_logprobs" is null for a token without alternatives.
  nlohmann::ordered_json completion(std::span<const ScoredToken> tokens, std::size_t& offset) const;

  // For a chat:
  // {"content": [{"token", "logprob", "bytes", "top_logprobs": [...]}], "refusal": null}. "bytes"
  // are those that the token adds to the text; null where no tokenizer knows them.
  nlohmann::ordered_json chat(std::span<const ScoredToken> tokens) const;

 private:
  std::optional<std::string> bytes_of(std::int32_t token) const;
  std::string name_of(std::int32_t token) const;
  nlohmann::ordered_json alternatives(const ScoredToken& one) const;
  nlohmann::ordered_json entry(std::int32_t token, float logprob) const;

  const std::optional<text::Tokenizer>& tokenizer_;
  const bool as_ids_;
};

}  // namespace troupe::dialects
