// Calls a function for each row of a data set's file (row_source.hpp has the formats), and what
// readers of rows share. Reads on the caller's thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/row_source.hpp"
#include "runtime/data/table_list.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace troupe::data {

// Receives one row and its place ("train.jsonl:12"); returns false to stop reading. read_table puts
// the place in front of its errors.
using TakeRow = std::function<core::Result<bool>(const Json& row, const std::string& where)>;

// Calls `take` for each row of `file` until it returns false. Errors: those of RowSource, and those
// of `take`.
core::Result<void> read_table(const std::filesystem::path& file,
                              std::string_view key,
                              parse::Numbers numbers,
                              const TakeRow& take);

// A kData error about the row that is being read.
core::Failure bad_row(std::string why, std::string_view advice = {});

// The names of the row's columns, for error messages; cut after 200 characters.
std::string columns_of(const Json& row);

// The column `key` of the row. The error for a missing one lists the row's columns and names the
// setting `flag`.
core::Result<const Json*> column(const Json& row, const std::string& key, std::string_view flag);

// `pattern` with its first {} replaced by `prompt`; `prompt` itself if the pattern has no {}.
std::string fill_template(const std::string& pattern, const std::string& prompt);

}  // namespace troupe::data
