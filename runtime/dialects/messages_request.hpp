// Reads the bodies of POST /v1/messages and /v1/messages/count_tokens, Anthropic's Messages, into
// the same requests as those of the other APIs: blocks of tools become the calls and the tool
// messages that chat templates read. Sampling fields that Anthropic does not have (seed, min_p ...)
// have the names that chats give them. Pure functions; any thread. Bounds: as for the other bodies.
#pragma once

#include "runtime/dialects/generate_request.hpp"

#include <string>
#include <variant>

namespace troupe::dialects {

// Errors name the field at fault.
Read read_messages_request(const std::string& body, const ServeBounds& bounds);
std::variant<TokenizeRequest, ApiError> read_count_tokens(const std::string& body,
                                                          const ServeBounds& bounds);

}  // namespace troupe::dialects
