// Loads prompt datasets (.jsonl, .json or .csv files) into memory. Settings say which columns hold
// the prompt and the label; each row is also kept whole as JSON, for reward functions. Pure
// functions of files; any thread. Bounds: those of table_reader.hpp.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/chat_template.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe::data {

using ChatMessage = text::ChatMessage;

enum class RowFormat;  // row_format.hpp

// A prompt as messages, with what else the template gets of its row.
struct ChatPrompt {
  std::vector<text::ChatMessage> messages;
  text::ChatInputs inputs;
};

struct PromptRow {
  std::string prompt;                       // empty when `messages` is set
  std::vector<text::ChatMessage> messages;  // the turns of a chat prompt
  text::ChatInputs inputs;                  // what else its template gets
  bool conversational = false;              // the row itself holds messages, not text made into one
  std::string label;                        // the label column; a number or boolean as JSON text
  std::string columns_json;                 // all columns, as a compact JSON object
  std::string where;                        // "train.jsonl:12"
  RowFormat format{};                       // the format in which the prompt was found
};

struct DatasetColumns {
  std::string input_key = "input";
  std::string label_key{};        // empty: no label
  bool as_chat = false;           // turn a text prompt into one user message
  std::string input_template{};   // {} is replaced by the prompt; empty: no template
  std::uint64_t max_samples = 0;  // use only so many rows, from the first; 0: all
  bool known_formats = true;      // recognise ShareGPT and Alpaca rows by their columns
  // Plain text begins with what the tokenizer puts in front of a text (data.add_special_tokens).
  bool front = true;
};

// Reads `files`, paths separated by commas. Errors: kNotFound (no such file); kData, naming file
// and line (not JSON, not an object, a missing column, a wrong type, an empty prompt) or the files
// (no rows at all).
core::Result<std::vector<PromptRow>> load_prompts(const std::string& files,
                                                  const DatasetColumns& columns);

// Notes for users about rows whose prompt was found by their format, not by the settings: one note
// for each format, at its first row.
std::vector<std::string> prompt_notes(std::span<const PromptRow> rows,
                                      const DatasetColumns& columns);

// The names of all columns that load_prompts may take a chat from, with what else the template
// gets. Empty with a template for text, for then every prompt is text.
std::vector<std::string> prompt_columns(const DatasetColumns& columns);

// Reads the chat prompt of a row again, from its columns_json. Without messages if it is text.
core::Result<ChatPrompt> chat_of_row(const std::string& columns_json,
                                     const DatasetColumns& columns);

// The tools and template variables of a row, from its columns_json; none where it has no such
// columns, or something else in them.
text::ChatInputs inputs_of_row(const std::string& columns_json);

}  // namespace troupe::data
