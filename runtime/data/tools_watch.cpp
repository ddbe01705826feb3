#include "runtime/data/tools_watch.hpp"

#include "runtime/text/unseen_tools.hpp"

#include <algorithm>

namespace troupe::data {

void ToolsWatch::see(std::span<const text::ChatMessage> messages,
                     const text::ChatInputs& inputs,
                     const std::string& where) {
  if (chat_ == nullptr || looked_ || inputs.tools_json.empty()) return;
  looked_ = true;
  const auto answer = std::ranges::find(messages, "assistant", &text::ChatMessage::role);
  auto opening = messages.first(static_cast<std::size_t>(answer - messages.begin()));
  const text::ChatMessage any{"user", "?"};
  if (opening.empty()) opening = {&any, 1};
  const std::string names = text::unseen_tools(*chat_, opening, inputs);
  if (names.empty()) return;
  warning_ = where + ": column '" + kToolsColumn + "' has " + names + ", and the chat template (" +
             chat_->where() +
             ") shows nothing of them, so the model never sees them; put a chat_template.jinja "
             "that reads `tools` into the model folder";
}

void ToolsWatch::see(const Json& row, const std::string& where) {
  if (chat_ == nullptr || looked_ || !row.contains(kToolsColumn)) return;
  const auto inputs = chat_inputs(row, true);
  if (!inputs) return;
  for (const auto& [name, value] : row.items()) {
    if (name == kToolsColumn || !value.is_array() || value.empty()) continue;
    if (const auto messages = messages_in(value, name)) return see(*messages, *inputs, where);
  }
  see(std::span<const text::ChatMessage>(), *inputs, where);
}

}  // namespace troupe::data
