// Reads and writes the JSON of OpenAI's chat completions, for a question and its answer. Pure; any
// thread. A reply is read to a depth of kJsonDepth_max.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::actors::reward {

struct ChatQuestion {
  std::string model;   // empty: left out of the request
  std::string system;  // empty: no such message
  std::string user;
  double temperature = 0;
  std::int64_t max_tokens = 0;
  std::int64_t seed = 0;
};

// The body of POST /v1/chat/completions.
std::string chat_request(const ChatQuestion& question);

// The text of the first choice; nullopt when it has none (a filter, a call of a tool). Error
// (kData): this is not a chat completion, as a proxy's page or {"error": ...} sent with status 200.
core::Result<std::optional<std::string>> read_chat_reply(const std::string& body);

// The URL of chat completions under the base URL of an API: http://HOST/v1, http://HOST, or the
// whole URL already.
std::string chat_url(const std::string& base);

}  // namespace troupe::actors::reward
