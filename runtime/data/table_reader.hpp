// Reads dataset files row by row, as JSON objects: .jsonl (one object a line), .json (one array of
// objects), .csv (RFC 4180; the first record names the columns, and every value is text). Bounds:
// kJsonLine_bytes_max for a .jsonl line or CSV record, 4 GiB for a file, JSON depth 64. A .json
// file is read into memory whole. Reads on the caller's thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/parse/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

using Json = nlohmann::ordered_json;

// Receives one row and its place ("train.jsonl:12"); returns false to stop reading. read_table puts
// the place in front of its errors.
using TakeRow = std::function<core::Result<bool>(const Json& row, const std::string& where)>;

// Calls `take` for each row of `file` until it returns false. `key` is the setting that named the
// file, `numbers` what becomes of numbers that have other spellings. Errors: kNotFound (no such
// file), kData (naming file and line), and those of `take`.
core::Result<void> read_table(const std::filesystem::path& file,
                              std::string_view key,
                              parse::Numbers numbers,
                              const TakeRow& take);

// Splits "a.jsonl,b.csv" at its commas; leaves out empty names.
std::vector<std::string> split_files(std::string_view files);

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
