// Looks at the first rows of a dataset as the readers do, before anything is trained: which columns
// or format they have. Pure functions of files; any thread.
#pragma once

#include "runtime/config/method.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/row_source.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

// What the rows of a method hold.
using RowNeed = config::MethodRows;

// The columns that a configuration names; empty: not named.
struct NamedColumns {
  std::string prompt, answer, chosen, rejected, label;
};

struct RowLook {
  std::uint64_t rows = 0;  // that were looked at
  bool all = false;        // there are no others
  // Columns that a configuration has to name, since the readers look for others; empty: theirs, or
  // none is needed.
  NamedColumns to_name;
  std::string label;  // the column of the expected answer of a prompt; empty: none was found
  bool chat = false;  // prompts are messages, ShareGPT or Alpaca rows: a chat template is needed
  bool text_prompt = false;         // prompts are texts, which a chat template may go around
  std::string words;                // "a prompt in 'question' and its answer in 'answer'"
  std::vector<std::string> labels;  // of the first rows, at most kLabels
  std::vector<Json> firsts;         // the first rows, at most kFirsts: to measure lengths

  static constexpr std::uint64_t kRows = 1000;
  static constexpr std::size_t kLabels = 100, kFirsts = 200;
};

// `files`, separated by commas, are those of the setting `key`. Errors: those of read_table; kData,
// naming file and line: columns that are no row of this kind, with the columns that are there and
// the settings that name them; no rows at all.
core::Result<RowLook> look_at_rows(const std::string& files,
                                   std::string_view key,
                                   RowNeed need,
                                   const NamedColumns& named);

}  // namespace troupe::data
