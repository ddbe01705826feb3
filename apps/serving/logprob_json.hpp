// Log-probs of tokens in the two forms of OpenAI's API. Values are at temperature 1, over the whole
// vocabulary. Without a tokenizer a token's text is "token_id:5". Pure; any thread.
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
  std::optional<float> logprob{};
  std::span<const engine::TokenLogprob> top{};  // the likeliest tokens there; empty: not asked for
};

// {"text_offset": [], "tokens": [], "token_logprobs": [], "top_logprobs": []}. Offsets count
// characters from `offset` on, which becomes that behind the last token. The alternatives of a
// token are null where there are none.
nlohmann::ordered_json completion_logprobs(const std::optional<text::Tokenizer>& tokenizer,
                                           std::span<const ScoredToken> tokens,
                                           std::size_t& offset);

// {"content": [{"token", "logprob", "bytes", "top_logprobs": [...]}], "refusal": null}.
nlohmann::ordered_json chat_logprobs(const std::optional<text::Tokenizer>& tokenizer,
                                     std::span<const ScoredToken> tokens);

}  // namespace troupe::app
