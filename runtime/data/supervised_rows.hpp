// Tokenises one row of a supervised dataset: finds its columns, reads text or messages from them,
// and encodes prompt and answers. Internal to this room; pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/row_format.hpp"
#include "runtime/data/supervised_dataset.hpp"

namespace troupe::data {

struct CodedRow {
  Tokens prompt;                    // empty for sequences (kAnswer, kText and kSteps)
  Tokens answer;                    // the whole sequence, the better answer or the rated answer
  Tokens rejected;                  // pairs only
  std::vector<std::uint8_t> learn;  // sequences only: [answer], 1 where the token is learned
  Tokens labels;                    // kSteps: as SupervisedRow has them
  std::vector<float> shares;
  double margin = 0;
  bool desirable = true;
  std::uint32_t teacher = 0;
  RowFormat format = RowFormat::kColumns;
  std::string found;  // says which columns were taken that no setting names; "": none
};

// Domains::teacher_of of a row that is parsed already.
core::Result<std::uint32_t> teacher_of_row(const Domains& domains, const Json& row);

// Errors name the column, not the row.
core::Result<CodedRow> coded_row(const Json& row,
                                 const SupervisedColumns& columns,
                                 const DialogueCoder& coder);

}  // namespace troupe::data
