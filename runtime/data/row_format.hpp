// Rows that are known by the names of their columns, as LLaMA-Factory writes and reads them:
// ShareGPT (`conversations` of turns with from and value) and Alpaca (`instruction`, `input`,
// `output`, `system`, `history`), both also as pairs with `chosen` and `rejected`. They are read as
// dialogues. Every column of a known format that holds text is read, or the row is refused.
// Internal to this room but for the names; pure functions, any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/table_reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::data {

enum class RowFormat {
  kColumns,   // what the settings name
  kMessages,  // the same, and the prompt or dialogue is a list of messages
  kShareGpt,
  kAlpaca,
};

// What a row of a known format holds. Of pairs: `chosen` and `rejected` with an empty `answer`.
struct KnownRow {
  // Up to the answer; ends with the user's turn, or a tool's.
  std::vector<text::ChatMessage> prompt;
  std::string answer;  // the last turn of the assistant; empty: there is none
  std::string chosen, rejected;
};

// kShareGpt or kAlpaca by the columns that are there; else kColumns, also where the row has the
// column `key` that the settings name for the prompt (but for the formats' own names).
RowFormat format_of(const Json& row, const std::string& key);

// kPair: chosen and rejected answers are read; kOne: a row must not have them.
enum class Answers { kOne, kPair };

// Reads a row for which format_of gave `format`. Errors name the column and what to do.
core::Result<KnownRow> known_row(const Json& row, RowFormat format, Answers answers);

// The prompt as one text, for a template of one's own; an error where it is more than one turn.
core::Result<std::string> single_text(const KnownRow& row);

// A line for users about the first row of a format in a file; nothing to say about kColumns.
// `what_else`: what becomes of it, "the last answer is learned".
std::string format_note(const std::string& where,
                        RowFormat format,
                        bool as_text,
                        const std::string& what_else);

}  // namespace troupe::data
