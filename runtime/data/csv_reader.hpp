// Reads a CSV file (RFC 4180) record by record. A field in double quotes may hold commas, line
// breaks and doubled quotes. Lines end with LF or CRLF. Skips empty lines and a leading byte order
// mark. One owner, one thread. A record longer than the given number of bytes is an error.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace troupe::data {

struct CsvRecord {
  std::vector<std::string> fields;
  std::string where;  // file and line where the record begins: "rows.csv:12"
};

class CsvReader {
 public:
  // `name`: the file's name in messages. `in` must outlive this object.
  CsvReader(std::istream& in, std::string name, std::uint64_t record_bytes_max);

  // The next record; nullopt at the end. Errors (kData, naming file:line): a quote inside an
  // unquoted field, text after a closing quote, a quote that is never closed, a record that is too
  // long.
  core::Result<std::optional<CsvRecord>> next();

 private:
  int get();
  // Appends one field to the record; true when another follows.
  core::Result<bool> field(CsvRecord& record);
  core::Result<void> quoted(CsvRecord& record, std::string& value);
  core::Failure bad(const CsvRecord& record, const std::string& why) const;

  std::istream& in_;
  const std::string name_;
  const std::uint64_t bytes_max_;
  std::uint64_t line_ = 1;
  std::uint64_t bytes_ = 0;  // of the record being read
};

}  // namespace troupe::data
