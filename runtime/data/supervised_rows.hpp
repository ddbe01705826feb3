// Tokenises one row of a file: chooses the columns, reads them as text or as messages, and makes
// prompt and answers of them. Internal to this room; pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/row_format.hpp"
#include "runtime/data/supervised_dataset.hpp"

namespace troupe::data {

struct CodedRow {
  Tokens prompt;                    // empty for sequences
  Tokens answer;                    // the sequence, the better or the rated answer
  Tokens rejected;                  // of pairs
  std::vector<std::uint8_t> learn;  // of sequences
  double margin = 0;
  bool desirable = true;
  RowFormat format = RowFormat::kColumns;
  // Of pairs: the prompt is in the column `prompt`, which no setting names.
  bool found_prompt = false;
};

// Tokenises a row as `columns` says. Errors name the column, not the row.
core::Result<CodedRow> coded_row(const Json& row,
                                 const SupervisedColumns& columns,
                                 const DialogueCoder& coder);

}  // namespace troupe::data
