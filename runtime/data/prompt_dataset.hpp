// Prompt datasets (.jsonl, .json, .csv: table_reader.hpp), read whole. Columns are
// mapped to prompt and label; the other columns are kept for reward functions.
// Built once, then read-only. Bounds: kJsonLine_bytes_max a line, JSON depth 64, file 4 GiB.
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

struct PromptRow {
  std::string prompt;                       // empty when `messages` is set
  std::vector<text::ChatMessage> messages;  // of a chat prompt
  bool conversational = false;              // the dataset has messages, not a text made into one
  std::string label;                        // text of the label column; numbers as written in JSON
  std::string columns_json;                 // the whole object, compact
  std::string where;                        // "train.jsonl:12"
  RowFormat format{};                       // how its prompt was found
};

struct DatasetColumns {
  std::string input_key = "input";
  std::string label_key{};        // empty: no label
  bool as_chat = false;           // a text prompt becomes one user message
  std::string input_template{};   // {} is replaced by the prompt; empty: none
  std::uint64_t max_samples = 0;  // 0: all
  bool known_formats = true;      // ShareGPT and Alpaca rows are known by their columns
};

// `files`: paths separated by commas, .jsonl, .json or .csv. Errors are kData and name file:line:
// not JSON, not an object, missing column, wrong type, empty prompt, no rows at all; kNotFound: no
// such file.
core::Result<std::vector<PromptRow>> load_prompts(const std::string& files,
                                                  const DatasetColumns& columns);

// Notes for users on how prompts were found where the settings do not say it: one per format.
std::vector<std::string> prompt_notes(std::span<const PromptRow> rows,
                                      const DatasetColumns& columns);

// The columns that a row's prompt may be made of, where it can be a chat; none with a template.
std::vector<std::string> prompt_columns(const DatasetColumns& columns);

// The messages of a row that was read before, from its columns_json; none where its prompt is text.
core::Result<std::vector<ChatMessage>> messages_of_row(const std::string& columns_json,
                                                       const DatasetColumns& columns);

}  // namespace troupe::data
