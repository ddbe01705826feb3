// The paths that take requests for samples, each with its reader. Pure.
#pragma once

#include "runtime/dialects/generate_request.hpp"

#include <array>
#include <string>
#include <string_view>
#include <variant>

namespace troupe::dialects {

// Reads the bodies of POST /v1/messages and /v1/messages/count_tokens, Anthropic's Messages, into
// the same requests as those of the other APIs: blocks of tools become the calls and the tool
// messages that chat templates read. Sampling fields that Anthropic does not have (seed, min_p ...)
// have the names that chats give them. Errors name the field at fault.
Read read_messages_request(const std::string& body, const ServeBounds& bounds);
std::variant<TokenizeRequest, ApiError> read_count_tokens(const std::string& body,
                                                          const ServeBounds& bounds);

using Reader = Read (*)(const std::string& body, const ServeBounds& bounds);

struct ReaderRow {
  std::string_view path;
  Reader reader;
};
inline constexpr std::array kReaders = {
    ReaderRow{"/v1/completions", &read_completion},
    ReaderRow{"/v1/chat/completions", &read_chat},
    ReaderRow{"/inference/v1/generate", &read_token_generate},
    ReaderRow{"/v1/messages", &read_messages_request},
};

// Null if the path takes none.
inline Reader reader_of(std::string_view path) {
  for (const ReaderRow& row : kReaders)
    if (row.path == path) return row.reader;
  return nullptr;
}

}  // namespace troupe::dialects
