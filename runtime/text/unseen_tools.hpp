// Whether a model gets to see the tools that it is offered: a chat template may leave them out.
// Pure functions.
#pragma once

#include "runtime/text/chat_template.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe::text {

// "add, sub": the names of the tools, a JSON array, where a dialogue that was rendered with them is
// the same text as without and does not name them all. Empty: they are seen, or have no names.
std::string unseen_tools(std::string_view without,
                         std::string_view with,
                         std::string_view tools_json);

// The same for messages under a template. Empty, too, where the template refuses the messages.
std::string unseen_tools(const ChatTemplate& chat,
                         std::span<const ChatMessage> messages,
                         const ChatInputs& inputs);

}  // namespace troupe::text
