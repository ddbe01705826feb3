// Recognises two well-known row formats by their column names, as LLaMA-Factory does, and reads
// them as dialogues: ShareGPT (`conversations`, a list of turns with from and value) and Alpaca
// (`instruction`, `input`, `output`, `system`, `history`). Either may hold a pair of answers in
// `chosen` and `rejected`. Internal to this room; pure functions, any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/chat_rows.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::data {

enum class RowFormat {
  kColumns,   // the columns that the settings name, with text in the prompt's column
  kMessages,  // those columns, with a list of messages in the prompt's
  kShareGpt,
  kAlpaca,
  kStepwise,  // a prompt, a list of steps and a list of labels, as TRL's process reward trainer has
              // them
};

// The contents of a ShareGPT or Alpaca row: a prompt with one answer, or with a pair of answers.
struct KnownRow {
  // The turns before the answer; at least one is the user's.
  std::vector<text::ChatMessage> prompt;
  text::ChatInputs inputs;
  std::optional<text::ChatMessage> answer;  // the assistant's last turn; none for a pair
  text::ChatMessage chosen, rejected;       // set only for a pair
};

// kShareGpt or kAlpaca if the row has that format's columns, else kColumns. `key` is the prompt
// column of the settings: a row that has it is kColumns too, unless the name is "input",
// "instruction" or "conversations", which the formats themselves use; and so is every row where
// `key` is a column that nobody would look for unasked (is_default_prompt).
RowFormat format_of(const Json& row, const std::string& key);

// kPair: known_row reads `chosen` and `rejected`; kOne: it ignores them and reads the one answer.
enum class Answers { kOne, kPair };

// Reads a row for which format_of returned `format`, kShareGpt or kAlpaca. Errors (kData) name the
// column and the remedy.
core::Result<KnownRow> known_row(const Json& row, RowFormat format, Answers answers);

// The prompt as one text, for data.input_template. An error if the prompt has more than one turn,
// or the row something for the chat template.
core::Result<std::string> single_text(const KnownRow& row);

// A note for users about the first row of a format other than kColumns: where it is, and how rows
// of the format are read. `as_text`: their prompts go into data.input_template, not through the
// chat template. `what_else`: appended unless empty, for example "the last answer is learned".
std::string format_note(const std::string& where,
                        RowFormat format,
                        bool as_text,
                        const std::string& what_else);

}  // namespace troupe::data
