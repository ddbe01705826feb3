// What the request handlers of `troupe serve` need of the model (names, tokenizer, chat template,
// limits), and functions that turn a request into tokens. Immutable once made; any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/tools/tool_format.hpp"
#include "runtime/guide/guide_maker.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::dialects {

struct ServedModel {
  std::vector<std::string> names;              // replies use the first if a request names none
  std::string root{};                          // --model as given
  std::optional<text::Tokenizer> tokenizer{};  // none: the server takes and returns token ids
  std::optional<text::ChatTemplate> chat{};
  std::string no_chat{};  // why there is no template
  ToolFormat tool_format = ToolFormat::kJson;
  std::shared_ptr<guide::GuideMaker> guides{};  // none: output cannot be guided
  std::int64_t context = 0;                     // tokens of prompt and response
  std::int64_t positions_max = 0;               // how many tokens fit into the KV blocks
  std::int64_t vocab = 0;
  std::int64_t created_s = 0;                          // Unix time at which it was loaded
  std::size_t token_bytes_max = 0;                     // bytes of the longest token's text
  std::int64_t moe_layers = 0, experts_per_token = 0;  // 0: not a mixture of experts

  bool has_name(const std::string& name) const;
};

// The error for a request that names another model; nothing if it is this one.
std::optional<ApiError> check_model_name(const ServedModel& model, const std::string& name);
// What GET /v1/models says of the model under one of its names, and of all of them.
nlohmann::ordered_json model_card(const ServedModel& model, const std::string& name);
nlohmann::ordered_json model_list(const ServedModel& model);

// Makes guides for the model of a folder, by its tokenizer.json, which is read at the first.
std::shared_ptr<guide::GuideMaker> guides_of(const std::filesystem::path& folder,
                                             std::int64_t vocab);

// Bytes of the longest token of a vocabulary: a text of b bytes has at least b / that many tokens.
std::size_t longest_token_bytes(const text::Tokenizer& tokenizer);

struct EncodedPrompt {
  std::vector<std::int32_t> tokens;
  std::string text;  // the prompt's text, if the request asks for echo
};

struct Encoded {
  std::vector<EncodedPrompt> prompts;                 // one for a chat
  std::vector<std::int32_t> max_new_tokens;           // by prompt, at least 1
  std::shared_ptr<const engine::TokenGuide> guide{};  // of all its samples; null: none
};

// The text that the model's template makes of a list of messages.
std::variant<std::string, ApiError> render_chat(const ServedModel& model,
                                                const std::string& messages_json,
                                                const text::RenderOptions& options);
// The tokens of a text; `add_special`: with those that the tokenizer puts in front of one.
std::variant<std::vector<std::int32_t>, ApiError> encode_text(const ServedModel& model,
                                                              const std::string& text,
                                                              bool add_special);
// The tokens of a request's prompts.
std::variant<std::vector<EncodedPrompt>, ApiError> encode_prompts(const ServedModel& model,
                                                                  const GenerateRequest& request);
// Checks the prompts of a request, computes how many new tokens each may get, and compiles the
// grammar of its responses.
std::variant<Encoded, ApiError> fit_prompts(const ServedModel& model,
                                            const GenerateRequest& request,
                                            std::vector<EncodedPrompt> prompts);

// Tokenizes the prompts of a request and fits them, as fit_prompts does. Errors name
// the field. May take milliseconds, so do not call it on an io thread.
std::variant<Encoded, ApiError> encode_request(const ServedModel& model,
                                               const GenerateRequest& request);

// Tokenizes the prompt or the dialogue of a TokenizeRequest.
std::variant<std::vector<std::int32_t>, ApiError> encode_tokenize(const ServedModel& model,
                                                                  const TokenizeRequest& request);

}  // namespace troupe::dialects
