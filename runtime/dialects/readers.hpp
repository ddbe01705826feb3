// Which reader takes the requests for samples to a path. Pure.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/messages_request.hpp"

#include <string>
#include <string_view>

namespace troupe::dialects {

using Reader = Read (*)(const std::string& body, const ServeBounds& bounds);

// Null if the path takes none.
inline Reader reader_of(std::string_view path) {
  if (path == "/v1/completions") return &read_completion;
  if (path == "/v1/chat/completions") return &read_chat;
  if (path == "/inference/v1/generate") return &read_token_generate;
  if (path == "/v1/messages") return &read_messages_request;
  return nullptr;
}

}  // namespace troupe::dialects
