#include "actors/reward/scored_text.hpp"

namespace troupe::actors {

core::Result<std::string> ScoredText::of(const RewardGroup& group,
                                         const std::string& response) const {
  const std::string as_text = group.prompt + response;
  if (!columns.input_template.empty()) return as_text;
  auto read = data::messages_of_row(group.columns, columns);
  if (!read && columns.as_chat) return read.failure();
  // A row without the prompt's columns had a text prompt.
  if (!read || read->empty()) return as_text;
  std::vector<text::ChatMessage> messages = std::move(*read);
  if (!chat) {
    return core::fail(
        core::ErrorCode::kConfig,
        "the prompt is a chat, and the reward model " + folder.string() + " has no chat template",
        "add chat_template.jinja to its folder");
  }
  messages.push_back({"assistant", response});
  text::RenderOptions options;
  options.add_generation_prompt = false;
  return chat->render(messages, options);
}

}  // namespace troupe::actors
