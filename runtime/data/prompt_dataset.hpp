// Loads prompt datasets (files of rows, row_source.hpp) into memory. Settings say which columns
// hold the prompt and the label; each row is also kept whole as JSON, for reward functions. Pure
// functions of files; any thread. Bounds: those of row_source.hpp.
#pragma once

#include "runtime/config/key_types.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/row_source.hpp"
#include "runtime/text/chat_template.hpp"

#include <cstdint>
#include <set>
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

// Labels and columns go to rewards as their file has them.
inline constexpr auto kPromptNumbers = parse::Numbers::kAsWritten;

using config::Text;

struct DatasetColumns {
#define KEYS "runtime/data/data_keys.def"
#include "runtime/config/fill.def"
  std::uint64_t max_samples = 0;  // use only that many rows, from the first; 0: all
  bool known_formats = true;      // recognise ShareGPT and Alpaca rows by their columns
};

// Reads `files`, as table_list.hpp has them. Errors: kNotFound (no such file); kData, naming file
// and line (not JSON, not an object, a missing column, a wrong type, an empty prompt) or the files
// (no rows at all).
core::Result<std::vector<PromptRow>> load_prompts(const std::string& files,
                                                  const DatasetColumns& columns);

// Reads one row; `where` is its place. Errors (kData) do not name it.
core::Result<PromptRow> prompt_of_row(const Json& row,
                                      const std::string& where,
                                      const DatasetColumns& columns);

// Why files without rows are no dataset.
core::Failure no_prompts(const std::string& files);

// Notes for users about rows whose prompt was found by their format, not by the settings: one note
// for each format, at its first row.
class PromptNotes {
 public:
  explicit PromptNotes(const DatasetColumns& columns);
  void add(const PromptRow& row);
  const std::vector<std::string>& all() const { return notes_; }

 private:
  const bool templated_;
  std::set<RowFormat> said_;
  std::vector<std::string> notes_;
};
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
