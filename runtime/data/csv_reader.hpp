// Records of a CSV file as RFC 4180 has them: fields between commas; a field in double quotes may
// hold commas, line breaks and quotes written twice. Lines end with LF or CRLF; a byte order mark
// at the start and empty lines are passed over. One owner, one thread; a record is bounded in
// bytes.
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
  std::string where;  // "rows.csv:12", its first line
};

class CsvReader {
 public:
  CsvReader(std::istream& in, std::string name, std::uint64_t record_bytes_max);

  // Nothing at the end. Errors (kData, file:line): a quote inside an unquoted field, text after a
  // closing quote, a quote that is never closed, a record that is too long.
  core::Result<std::optional<CsvRecord>> next();

 private:
  int get();
  core::Result<bool> field(CsvRecord& record);  // true: another field follows
  core::Result<void> quoted(CsvRecord& record, std::string& value);
  core::Failure bad(const CsvRecord& record, const std::string& why) const;

  std::istream& in_;
  const std::string name_;
  const std::uint64_t bytes_max_;
  std::uint64_t line_ = 1;
  std::uint64_t bytes_ = 0;  // of the record being read
};

}  // namespace troupe::data
