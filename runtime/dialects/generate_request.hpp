// Parses the JSON bodies of POST /v1/completions, /v1/chat/completions, /inference/v1/generate,
// /tokenize and /detokenize, and checks everything that needs no tokenizer. Field names and
// meanings are OpenAI's, or vLLM's for fields and paths that OpenAI does not have. Values and pure
// functions; any thread. Bounds: kJsonDepth_max, ServeBounds, and those of
// engine/request_check.hpp.
#pragma once

#include "runtime/dialects/api_error.hpp"
#include "runtime/dialects/limits.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/guide/grammar.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::dialects {

// One prompt: a text, or token ids.
using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

// How a request is written and answered: /v1/completions, /v1/chat/completions,
// /inference/v1/generate, which takes and returns token ids alone, or /v1/messages.
enum class Dialect { kCompletion, kChat, kTokens, kMessages };

// A dialogue, and what the chat template is told besides its messages.
struct Dialogue {
  std::string messages_json;            // as written, checked
  std::string template_variables_json;  // chat_template_kwargs
  std::string tools_json;               // the tools, as the template gets them
  std::set<std::string> tool_names;
  bool tools = false;     // the response may call them
  bool one_call = false;  // only the first call counts (parallel_tool_calls: false)
  // The response must be calls of tools, of any or of `called_tool`; goes with `tools`. What writes
  // them is tools/forced_call.hpp.
  bool must_call = false;
  std::string called_tool;
  std::optional<guide::Grammar> grammar;  // what the response must match; not with must_call
  std::string grammar_field;              // that asked for it
  bool add_generation_prompt = true;
  bool add_special_tokens = true;  // let the tokenizer add its front tokens, to text prompts too
};

struct GenerateRequest : Dialogue {
  Dialect dialect = Dialect::kCompletion;
  std::string model;            // empty: the served one
  std::vector<Prompt> prompts;  // of a completion

  engine::SamplingParams sampling;         // max_new_tokens is set later, from max_tokens
  std::optional<std::int64_t> max_tokens;  // 0: only echo the prompt; none: what fits
  std::int32_t n = 1;                      // samples per prompt
  std::optional<std::uint64_t> seed;
  bool echo = false;
  bool logprobs = false;            // sampling.top_logprobs says with how many alternatives
  bool processed_logprobs = false;  // log-probs as drawn (processed_logprobs())
  bool stream = false, include_usage = false;
  bool skip_special_tokens = true;
  bool include_stop = false;      // keep the matched stop string in the text
  bool return_token_ids = false;  // those of prompt and response, besides the text
  bool tokens_as_ids = false;     // log-probs call a token "token_id:5"
  std::string cache_salt;         // the prefix cache serves requests of the same salt alone
  std::int32_t priority = 0;      // requests with a smaller one go first
  std::string request_id;         // of kTokens; empty: the server makes one

  // True if the prompt is a dialogue, which the chat template writes.
  bool is_dialogue() const { return dialect == Dialect::kChat || dialect == Dialect::kMessages; }
  // True if the answer holds only the prompt (echo), without sampled tokens.
  bool scores_only() const { return max_tokens == 0; }
};

// The server's bounds on a request.
struct ServeBounds {
  std::int64_t n_max = 256;
  std::int64_t prompts_max = limits::kServePrompts_max;
  std::int64_t logprobs_max = limits::kServeLogprobs;
  bool tokens_as_ids = false;         // default of return_tokens_as_token_ids
  bool processed_logprobs = false;    // of every request
  bool routed_experts = false;        // default of return_routed_experts
  std::size_t tokens_max = 1u << 20;  // ids in one list of token ids
  std::size_t values_max = 1u << 16;  // values in the JSON, not counting token ids of prompts
};

using Read = std::variant<GenerateRequest, ApiError>;

// Errors name the field at fault.
Read read_completion(const std::string& body, const ServeBounds& bounds);
Read read_chat(const std::string& body, const ServeBounds& bounds);
Read read_token_generate(const std::string& body, const ServeBounds& bounds);

// The body of POST /tokenize (a prompt or a dialogue), /detokenize (tokens) or
// /v1/messages/count_tokens (a dialogue).
struct TokenizeRequest : Dialogue {
  std::string model;
  std::optional<std::string> prompt;
  std::vector<std::int32_t> tokens;  // of /detokenize
  bool token_strings = false;
};
std::variant<TokenizeRequest, ApiError> read_tokenize(const std::string& body,
                                                      const ServeBounds& bounds);
std::variant<TokenizeRequest, ApiError> read_detokenize(const std::string& body,
                                                        const ServeBounds& bounds);

}  // namespace troupe::dialects
