#include "runtime/data/csv_reader.hpp"

namespace troupe::data {
namespace {

constexpr int kEnd = std::char_traits<char>::eof();

}  // namespace

CsvReader::CsvReader(std::istream& in, std::string name, std::uint64_t record_bytes_max)
    : in_(in), name_(std::move(name)), bytes_max_(record_bytes_max) {
  constexpr unsigned char kMark[] = {0xEF, 0xBB, 0xBF};
  for (const unsigned char byte : kMark) {
    if (in_.rdbuf()->sgetc() != byte) break;
    in_.rdbuf()->sbumpc();
  }
}

int CsvReader::get() {
  const int c = in_.rdbuf()->sbumpc();
  if (c == '\n') ++line_;
  if (c != kEnd) ++bytes_;
  return c;
}

core::Failure CsvReader::bad(const CsvRecord& record, const std::string& why) const {
  return core::fail(core::ErrorCode::kData, record.where + ": " + why);
}

core::Result<std::optional<CsvRecord>> CsvReader::next() {
  while (in_.rdbuf()->sgetc() == '\n' || in_.rdbuf()->sgetc() == '\r')
    get();
  if (in_.rdbuf()->sgetc() == kEnd) return std::optional<CsvRecord>();
  CsvRecord record;
  record.where = name_ + ":" + std::to_string(line_);
  bytes_ = 0;
  for (bool more = true; more;) {
    TROUPE_TRY_ASSIGN(follows, field(record));
    more = follows;
  }
  return std::optional<CsvRecord>(std::move(record));
}

core::Result<void> CsvReader::quoted(CsvRecord& record, std::string& value) {
  for (;;) {
    const int c = get();
    if (c == kEnd) return bad(record, "a quote is never closed");
    if (bytes_ > bytes_max_) {
      return bad(record, "record longer than " + std::to_string(bytes_max_ >> 20) +
                             " MiB; is a quote never closed?");
    }
    if (c != '"') {
      value += static_cast<char>(c);
    } else if (in_.rdbuf()->sgetc() == '"') {
      value += static_cast<char>(get());
    } else {
      return {};
    }
  }
}

core::Result<bool> CsvReader::field(CsvRecord& record) {
  std::string value;
  if (in_.rdbuf()->sgetc() == '"') {
    get();
    TROUPE_TRY(quoted(record, value));
    const int after = in_.rdbuf()->sgetc();
    if (after != ',' && after != '\n' && after != '\r' && after != kEnd) {
      return bad(record, "text after the closing quote of field " +
                             std::to_string(record.fields.size() + 1));
    }
  }
  for (;;) {
    const int c = get();
    if (c == '"') {
      return bad(record, "a quote inside field " + std::to_string(record.fields.size() + 1) +
                             ", which does not begin with one");
    }
    if (bytes_ > bytes_max_)
      return bad(record, "record longer than " + std::to_string(bytes_max_ >> 20) + " MiB");
    const bool line_end = c == '\r' && in_.rdbuf()->sgetc() == '\n';
    if (line_end) get();
    if (c == kEnd || c == '\n' || c == ',' || line_end) {
      record.fields.push_back(std::move(value));
      return c == ',';
    }
    value += static_cast<char>(c);
  }
}

}  // namespace troupe::data
