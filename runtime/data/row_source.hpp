// Rows of a data set's file, one after the other, as JSON objects. One interface for all formats:
// .jsonl (one object a line), .json (one list of objects), .csv (RFC 4180; the first record names
// the columns, and every value is text), each also compressed by gzip or zstd; Parquet; Arrow IPC,
// as a file (.feather, .arrow) or a stream (.arrow of `datasets`). The first bytes of the file
// decide, then the ending of its name. A file is never held whole, except a .json file. Bounds:
// kJsonLine_bytes_max for a .jsonl line or CSV record, 4 GiB for a .json file, those of
// runtime/tables for tables, JSON depth 64. One owner, one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/parse/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::data {

using Json = nlohmann::ordered_json;

class RowSource {
 public:
  // `key` is the setting that named the file, `numbers` what becomes of numbers that have other
  // spellings. Errors: those of check_rows_file; kData, naming the file; for tables and compressed
  // files also those of tables::TableFile.
  static core::Result<std::unique_ptr<RowSource>> open(const std::filesystem::path& file,
                                                       std::string_view key,
                                                       parse::Numbers numbers);
  virtual ~RowSource() = default;

  // The next row; null at the end. It is valid until the next call. Errors (kData) begin with the
  // row's place.
  virtual core::Result<const Json*> next() = 0;
  // Passes over that many rows, which are not looked at as far as the format allows. Error kData:
  // there are not so many, or a damaged file.
  virtual core::Result<void> skip(std::uint64_t rows);
  // The place of the latest row: "train.jsonl:12", "train.json item 12".
  virtual const std::string& where() const = 0;
  // Whether `next` may be called after an error: the row behind the bad one can be found.
  virtual bool goes_on() const { return false; }
};

// The place of row `number` of a file whose rows are counted from 1.
std::string place_of_row(std::string_view file, std::uint64_t number);

}  // namespace troupe::data
