// Tokenises one row of a supervised dataset: finds its columns, reads text or messages from them,
// and encodes prompt and answers. Pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/row_format.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/parse/bounded_json.hpp"

namespace troupe::data {

// A coded row; the fields are those of SupervisedRow.
struct CodedRow : TokenRow {
  std::vector<float> shares;
  double margin = 0;
  bool desirable = true;
  std::uint32_t teacher = 0;
  RowFormat format = RowFormat::kColumns;
  std::string found;  // says which columns were taken that no setting names; "": none
};

// Templates print whole integers; all other numbers of a row are read as numbers.
inline constexpr auto kRowNumbers = parse::Numbers::kWholeIntegers;

// The row as a view; file, line and id are the caller's.
SupervisedRow view_of(const CodedRow& row);

// Domains::teacher_of of a row that is parsed already.
core::Result<std::uint32_t> teacher_of_row(const Domains& domains, const Json& row);

// Errors name the column, not the row.
core::Result<CodedRow> coded_row(const Json& row,
                                 const SupervisedColumns& columns,
                                 const DialogueCoder& coder);

// A row of kSteps: a text with a placeholder after each of its steps, and a list of their labels.
// The text is the column input_key (text, or the messages of a whole dialogue). A row that has
// `completions` in its place lists its steps: its text is `prompt` and the steps, each with a
// placeholder behind it, with the separator between two. Labels: texts, each one token; or numbers
// from 0 to 1 and booleans, the probability of the first of two reward tokens. Errors (kData) name
// the column: labels of another kind or number than the text's placeholders, a step that holds the
// placeholder itself.
core::Result<CodedRow> step_row(const Json& row,
                                const SupervisedColumns& columns,
                                const DialogueCoder& coder);

}  // namespace troupe::data
