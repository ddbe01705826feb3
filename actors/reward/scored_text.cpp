#include "actors/reward/scored_text.hpp"

namespace troupe::actors::reward {

core::Result<ScoredText::Made> ScoredText::of(const RewardGroup& group,
                                              const std::string& response) const {
  const Made as_text{group.prompt + response, columns.add_special_tokens};
  if (!columns.input_template.empty()) return as_text;
  auto read = troupe::data::chat_of_row(group.columns, columns);
  if (!read && columns.apply_chat_template) return read.failure();
  // A row without the prompt's columns had a text prompt.
  if (!read || read->messages.empty()) return as_text;
  std::vector<text::ChatMessage> messages = std::move(read->messages);
  if (!chat) {
    return core::fail(
        core::ErrorCode::kConfig,
        "the prompt is a chat, and the reward model " + folder.string() + " has no chat template",
        "add chat_template.jinja to its folder");
  }
  messages.push_back({"assistant", response});
  TROUPE_TRY_ASSIGN(rendered,
                    chat->render(messages, text::RenderOptions::with(read->inputs, false)));
  return Made{std::move(rendered), false};
}

}  // namespace troupe::actors::reward
