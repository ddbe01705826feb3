// What the HTTP side of `troupe serve` needs of its model (names, tokenizer, chat template,
// limits), and functions that turn a request into tokens. Immutable once made; any thread.
#pragma once

#include "apps/serving/generate_request.hpp"
#include "runtime/core/result.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

struct ServedModel {
  std::vector<std::string> names;              // the first is the one in replies
  std::string root{};                          // where it was loaded from
  std::optional<text::Tokenizer> tokenizer{};  // none: token ids alone
  std::optional<text::ChatTemplate> chat{};
  std::string no_chat{};  // why there is no template
  std::int64_t context = 0;
  std::int64_t positions_max = 0;  // that fit into the KV blocks
  std::int64_t vocab = 0;
  std::int64_t created_s = 0;
  std::size_t token_bytes_max = 0;                     // of the longest token's text
  std::int64_t moe_layers = 0, experts_per_token = 0;  // 0: without experts

  bool has_name(const std::string& name) const;
};

// Bytes of the longest token of a vocabulary: a text has at least its bytes over that many tokens.
std::size_t longest_token_bytes(const text::Tokenizer& tokenizer);

struct EncodedPrompt {
  std::vector<std::int32_t> tokens;
  std::string text;  // of the prompt, for echo; empty unless that was asked for
};

// The prompts of a request as tokens, with how many new tokens each may get. The dialogue of a chat
// is one prompt. Errors name the field. May take milliseconds: not for an io thread.
struct Encoded {
  std::vector<EncodedPrompt> prompts;
  std::vector<std::int32_t> max_new_tokens;  // of each prompt, at least 1
};
std::variant<Encoded, ApiError> encode_request(const ServedModel& model,
                                               const GenerateRequest& request);

std::variant<std::vector<std::int32_t>, ApiError> encode_tokenize(const ServedModel& model,
                                                                  const TokenizeRequest& request);

}  // namespace troupe::app
