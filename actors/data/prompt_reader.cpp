#include "actors/data/prompt_reader.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::data {
namespace {

core::Result<std::string> text_of_row(const troupe::data::PromptRow& row,
                                      const text::ChatTemplate* chat) {
  if (row.messages.empty()) return row.prompt;
  if (chat == nullptr) {
    return core::fail(core::ErrorCode::kConfig,
                      row.where + ": a chat prompt, but the model folder has no chat template",
                      "add chat_template.jinja to it or use a text column (--data.input_key)");
  }
  auto rendered = chat->render(row.messages, text::RenderOptions::with(row.inputs, true));
  if (rendered) return rendered;
  core::Error error = rendered.error().within(row.where);
  // The row is at fault where the template refuses it.
  if (error.code == core::ErrorCode::kInvalidArgument) error.code = core::ErrorCode::kData;
  return core::fail(std::move(error));
}

}  // namespace

core::Result<Prompt> prompt_of(troupe::data::PromptRow&& row,
                               std::uint64_t place,
                               const text::Tokenizer& tokenizer,
                               const text::ChatTemplate* chat,
                               bool add_special_tokens) {
  TROUPE_TRY_ASSIGN(rendered, text_of_row(row, chat));
  auto ids = tokenizer.ids(rendered, add_special_tokens && row.messages.empty());
  if (!ids) return core::fail(ids.error().within(row.where));
  if (ids->empty()) {
    return core::fail(core::ErrorCode::kData, row.where + ": the prompt has no tokens");
  }
  std::string messages = chat_json(row);
  return Prompt{place,
                std::move(*ids),
                std::move(rendered),
                std::move(row.label),
                std::move(row.columns_json),
                std::move(messages)};
}

core::Result<void> find_teacher(const troupe::data::Domains& domains,
                                const std::string& where,
                                Prompt& prompt) {
  const auto teacher = domains.teacher_of(prompt.columns);
  if (!teacher) return core::fail(teacher.error().within(where));
  prompt.teacher = *teacher;
  return {};
}

core::Result<std::optional<Prompt>> PromptReader::take(troupe::data::PromptRow&& row) {
  const std::string where = row.where;
  has_chats_ = has_chats_ || !row.messages.empty();
  tools_.see(row.messages, row.inputs, where);
  TROUPE_TRY_ASSIGN(prompt, prompt_of(std::move(row), seen_++, tokenizer_, chat_,
                                      options_.columns.add_special_tokens));
  TROUPE_TRY_ASSIGN(dropped, drops(where, prompt));
  if (dropped) return std::optional<Prompt>();
  TROUPE_TRY(find_teacher(options_.domains, where, prompt));
  TROUPE_TRY(check_bytes(where, prompt));
  longest_ = std::max<std::uint64_t>(longest_, prompt.tokens.size());
  return std::optional(std::move(prompt));
}

core::Result<void> PromptReader::tell(std::vector<std::string>& notes) const {
  if (!tools_.warning().empty()) notes.push_back(tools_.warning());
  if (dropped_ == 0) return {};
  const std::string all = std::to_string(seen_) + " prompts of " + options_.files;
  if (dropped_ == seen_) {
    return core::fail(core::ErrorCode::kData, "all " + all + " are longer than " + most());
  }
  notes.push_back(std::to_string(dropped_) + " of the " + all + " are longer than " + most() +
                  " and left out");
  return {};
}

std::string PromptReader::most() const {
  return "--data.prompt_max_len " + std::to_string(options_.prompt_tokens_max);
}

// Prompts that are too long are an error, or left out and counted.
core::Result<bool> PromptReader::drops(const std::string& where, const Prompt& prompt) {
  const std::size_t tokens = prompt.tokens.size();
  if (options_.prompt_tokens_max == 0 || tokens <= options_.prompt_tokens_max) return false;
  if (options_.drop_too_long) {
    ++dropped_;
    return true;
  }
  return core::fail(
      core::ErrorCode::kData,
      where + ": the prompt has " + std::to_string(tokens) + " tokens, more than " + most(),
      "shorten it, or leave such prompts out with --data.drop_too_long true");
}

// Bounds the part of a row that rewards read, because it is sent to them with each group.
core::Result<void> PromptReader::check_bytes(const std::string& where, const Prompt& prompt) {
  const std::size_t texts = prompt.text.size() + prompt.label.size();
  const std::size_t whole = texts + prompt.messages.size() + prompt.columns.size();
  if (options_.row_bytes_max == 0 || whole <= options_.row_bytes_max) return {};
  if (!reads_) reads_ = options_.reads ? options_.reads() : RewardReads();
  const std::size_t messages = reads_->messages ? prompt.messages.size() : 0;
  const std::size_t bytes = texts + messages + row_with(prompt.columns, *reads_).size();
  if (bytes <= options_.row_bytes_max) return {};
  return core::fail(core::ErrorCode::kData,
                    where + ": prompt, label and what the reward reads of the row (" +
                        reads_->text() + ") have " + std::to_string(bytes) +
                        " bytes, and a row may have " + std::to_string(options_.row_bytes_max),
                    "shorten it or leave it out");
}

}  // namespace troupe::actors::data
