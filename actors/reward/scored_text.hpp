// The text of prompt and response as a learned reward model reads it: with its own chat template
// where the prompt is a chat, else one after the other. Immutable; any thread.
#pragma once

#include "actors/protocol/reward_group.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/text/chat_template.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::actors::reward {

struct ScoredText {
  // How the run read prompts from dataset rows. The model's template renders prompts that are
  // chats; with columns.apply_chat_template, all prompts.
  troupe::data::DatasetColumns columns;
  std::optional<text::ChatTemplate> chat;
  std::filesystem::path folder;  // of the model, for messages

  struct Made {
    std::string text;
    bool front = false;  // encode it with what the tokenizer puts in front of plain text
  };

  // What of a row it needs.
  RewardReads reads() const {
    return chat ? RewardReads{false, troupe::data::prompt_columns(columns)} : RewardReads{};
  }
  // Errors: the columns of the prompt are missing or malformed; kConfig: it is a chat, and the
  // model has no template.
  core::Result<Made> of(const RewardGroup& group, const std::string& response) const;
};

}  // namespace troupe::actors::reward
