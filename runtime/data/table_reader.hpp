// Rows of dataset files, one JSON object each, in the order of the file: .jsonl (one object a
// line), .json (an array of objects), .csv (RFC 4180; the first record names the columns, every
// value is text). Internal to this room. Bounds: kJsonLine_bytes_max a row, JSON depth 64, file
// 4 GiB. Reads on the caller's thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/chat_template.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

using Json = nlohmann::ordered_json;

// Takes one row and where it stands ("train.jsonl:12"); false: enough, stop reading. Its errors
// need not say where: read_table puts that in front.
using TakeRow = std::function<core::Result<bool>(const Json& row, const std::string& where)>;

// Reads `file` until its end or until `take` has enough. `key` is the setting that named the file.
// Errors are kData and name file:line; kNotFound: no such file.
core::Result<void> read_table(const std::filesystem::path& file,
                              std::string_view key,
                              const TakeRow& take);

// "a.jsonl,b.csv" by its commas; empty names are left out.
std::vector<std::string> split_files(std::string_view files);

// An error of kind kData about the row that is being read.
core::Failure bad_row(std::string why);

// The names of the row's columns for messages, at most 200 characters.
std::string columns_of(const Json& row);

// The column `key`; an error that names the columns that are there and the flag to set.
core::Result<const Json*> column(const Json& row, const std::string& key, std::string_view flag);

// A list of {"role": text, "content": text}, or {"from": text, "value": text} with ShareGPT's
// names of the roles.
core::Result<std::vector<text::ChatMessage>> messages_in(const Json& list, const std::string& key);

// `pattern` with its first {} replaced by `prompt`; `prompt` itself when there is none.
std::string fill_template(const std::string& pattern, const std::string& prompt);

}  // namespace troupe::data
