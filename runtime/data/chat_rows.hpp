// Reads what a row of a dataset holds for the chat template: lists of messages, and the columns
// `tools` and `chat_template_kwargs`. Pure functions, any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/text/chat_template.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::data {

inline constexpr const char* kToolsColumn = "tools";
inline constexpr const char* kVariablesColumn = "chat_template_kwargs";

// Reads a list of messages (text/messages.hpp), each with a role or, as ShareGPT has them, with
// `from` and `value`; a turn from function_call becomes the assistant's with a call. `key`: the
// list's column, for errors.
core::Result<std::vector<text::ChatMessage>> messages_in(const Json& list, const std::string& key);

// Columns that may hold a list of messages: those of prompts and dialogues, and those of answers.
struct MessageColumns {
  std::vector<std::string> prompts, answers;
};

// The row with lists where texts hold messages as JSON, as files without lists (CSV) have them;
// nothing if there is no such text. A text is a list of messages if it is a JSON array of objects
// with a role and a content or calls, or with `from` and `value`; the answers are looked at where
// the prompt is a list, or where each of them is a whole dialogue. Error kData: `messages` or
// `conversations` is a text that begins as such a list and is none, with the line that mends it.
core::Result<std::optional<Json>> with_listed_messages(const Json& row,
                                                       const MessageColumns& columns,
                                                       parse::Numbers numbers);

// The row's tools and template variables; none where it has no such columns. `bare_tools`: the
// descriptions may lack the object around them, as LLaMA-Factory's do, and get it.
core::Result<text::ChatInputs> chat_inputs(const Json& row, bool bare_tools = false);

// The text of a column whose tokens may be counted: its own, or that of a list of messages as the
// template renders it; nothing for other values, and for messages without a template (null).
std::optional<std::string> text_of_column(const Json& value,
                                          const text::ChatTemplate* chat,
                                          const text::RenderOptions& options);

// An error if the row has tools or template variables, which plain text has no place for. The
// error says so of `what`, for example "a text prompt".
core::Result<void> refuse_chat_inputs(const Json& row, const std::string& what);

}  // namespace troupe::data
