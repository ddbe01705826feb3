#include "runtime/data/row_source.hpp"

#include "runtime/data/csv_reader.hpp"
#include "runtime/data/file_kind.hpp"
#include "runtime/data/foreign_file.hpp"
#include "runtime/data/limits.hpp"
#include "runtime/data/row_input.hpp"
#include "runtime/tables/table_file.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth_max = 64;
constexpr std::size_t kColumns_max = 4096;  // columns of a row, and names in any object of a row
constexpr std::uint64_t kList_bytes_max = 4ull << 30;
constexpr std::uint64_t kRow_bytes_max = limits::kJsonLine_bytes_max;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Result<Json> parse_json(std::string_view text, const std::string& where, parse::Numbers numbers) {
  auto value = parse::bounded_json<Json>(text, {.depth_max = kDepth_max,
                                                .names_max = kColumns_max,
                                                .repeats = parse::Repeats::kRefused,
                                                .numbers = numbers});
  if (!value) return fail(ErrorCode::kData, where + " " + value.error().message);
  return value;
}

// Skips the byte order mark that some editors put before the first line.
std::string_view without_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

core::Failure bad_place(const std::string& where,
                        const std::string& why,
                        std::string_view advice = {}) {
  return fail(ErrorCode::kData, where + ": " + why, advice);
}

Result<const Json*> object_at(const Json& row, const std::string& where) {
  if (!row.is_object()) return bad_place(where, "expected a JSON object");
  return &row;
}

// Reads the next line without its newline; false at the end of the file. Stops after `bytes_max` +
// 1 bytes, so that the caller can refuse a longer line.
bool next_line(std::istream& in, std::string& line, std::uint64_t bytes_max) {
  constexpr int kEnd = std::char_traits<char>::eof();
  line.clear();
  int c = in.rdbuf()->sbumpc();
  if (c == kEnd) return false;
  for (; c != kEnd && c != '\n' && line.size() <= bytes_max; c = in.rdbuf()->sbumpc())
    line += static_cast<char>(c);
  return true;
}

core::Failure too_few(const std::string& place) {
  return bad_place(place, "the file ends here, before rows that it had",
                   "a file that is streamed stays as it is until the run has ended");
}

class Lines final : public RowSource {
 public:
  Lines(std::unique_ptr<RowInput> input, std::string name, parse::Numbers numbers)
      : input_(std::move(input)), name_(std::move(name)), numbers_(numbers) {}

  Result<const Json*> next() override {
    TROUPE_TRY_ASSIGN(there, next_row());
    if (!there) return nullptr;
    TROUPE_TRY_SET(row_, parse_json(number_ == 1 ? without_mark(line_) : line_, where_, numbers_));
    return object_at(row_, where_);
  }
  Result<void> skip(std::uint64_t rows) override {
    for (; rows > 0; --rows) {
      TROUPE_TRY_ASSIGN(there, next_row());
      if (!there) return too_few(name_);
    }
    return {};
  }
  const std::string& where() const override { return where_; }
  bool goes_on() const override {
    return input_->state().has_value() && line_.size() <= kRow_bytes_max;
  }

 private:
  // Reads the next line that is not blank; false at the end.
  Result<bool> next_row() {
    while (next_line(input_->in(), line_, kRow_bytes_max)) {
      TROUPE_TRY(input_->state());  // a line may be cut
      where_ = name_ + ":" + std::to_string(++number_);
      if (line_.size() > kRow_bytes_max) {
        return bad_place(where_,
                         "line longer than " + std::to_string(kRow_bytes_max >> 20) + " MiB");
      }
      if (line_.find_first_not_of(" \t\r") != line_.npos) return true;
    }
    TROUPE_TRY(input_->state());
    return false;
  }

  const std::unique_ptr<RowInput> input_;
  const std::string name_;
  const parse::Numbers numbers_;
  std::uint64_t number_ = 0;
  std::string line_, where_;
  Json row_;
};

class List final : public RowSource {
 public:
  static Result<std::unique_ptr<RowSource>> open(std::unique_ptr<RowInput> input,
                                                 std::string name,
                                                 parse::Numbers numbers) {
    std::string text;
    std::vector<char> part(1 << 20);
    std::streambuf& bytes = *input->in().rdbuf();
    for (std::streamsize got = 1; got > 0;) {
      got = bytes.sgetn(part.data(), static_cast<std::streamsize>(part.size()));
      text.append(part.data(), static_cast<std::size_t>(got));
      if (text.size() > kList_bytes_max) {
        return bad_place(name, "larger than 4 GiB",
                         "make it .jsonl, which is read row by row: `troupe data convert`");
      }
    }
    TROUPE_TRY(input->state());
    TROUPE_TRY_ASSIGN(list, parse_json(without_mark(text), name, numbers));
    if (!list.is_array()) {
      return bad_place(name, "expected a list of objects",
                       "a file with one object a line must be called .jsonl");
    }
    return std::unique_ptr<RowSource>(new List(std::move(list), std::move(name)));
  }

  Result<const Json*> next() override {
    if (at_ >= list_.size()) return nullptr;
    where_ = name_ + " item " + std::to_string(at_ + 1);
    return object_at(list_[at_++], where_);
  }
  const std::string& where() const override { return where_; }

 private:
  List(Json list, std::string name) : list_(std::move(list)), name_(std::move(name)) {}

  const Json list_;
  const std::string name_;
  std::size_t at_ = 0;
  std::string where_;
};

class Csv final : public RowSource {
 public:
  static Result<std::unique_ptr<RowSource>> open(std::unique_ptr<RowInput> input,
                                                 std::string name) {
    std::unique_ptr<Csv> csv(new Csv(std::move(input), std::move(name)));
    TROUPE_TRY(csv->read_header());
    return std::unique_ptr<RowSource>(std::move(csv));
  }

  Result<const Json*> next() override {
    TROUPE_TRY_ASSIGN(record, read());
    if (!record) return nullptr;
    where_ = record->where;
    if (record->fields.size() != names_.size()) {
      return bad_place(where_,
                       std::to_string(record->fields.size()) + " fields, the header has " +
                           std::to_string(names_.size()),
                       "put a field with a comma or a line break in it into quotes");
    }
    row_ = Json::object();
    for (std::size_t i = 0; i < names_.size(); ++i)
      row_[names_[i]] = std::move(record->fields[i]);
    return &row_;
  }
  const std::string& where() const override { return where_; }

 private:
  Csv(std::unique_ptr<RowInput> input, std::string name)
      : input_(std::move(input)), reader_(input_->in(), std::move(name), kRow_bytes_max) {}

  // The next record. What a failed input cut short is no fault of the record.
  Result<std::optional<CsvRecord>> read() {
    auto record = reader_.next();
    TROUPE_TRY(input_->state());
    return record;
  }

  Result<void> read_header() {
    TROUPE_TRY_ASSIGN(header, read());
    if (!header) return {};
    names_ = std::move(header->fields);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i].empty())
        return bad_place(header->where, "the header has a column without a name", "name it");
      for (std::size_t j = 0; j < i; ++j) {
        if (names_[j] == names_[i])
          return bad_place(header->where, "two columns '" + names_[i] + "'",
                           "give each a name of its own");
      }
    }
    return {};
  }

  const std::unique_ptr<RowInput> input_;
  CsvReader reader_;
  std::vector<std::string> names_;
  std::string where_;
  Json row_;
};

class Table final : public RowSource {
 public:
  Table(tables::TableFile file, std::string name, parse::Numbers numbers)
      : file_(std::move(file)), name_(std::move(name)), numbers_(numbers) {}

  Result<const Json*> next() override {
    if (left_.empty()) {
      TROUPE_TRY_ASSIGN(there, next_batch());
      if (!there) return nullptr;
    }
    const std::string_view line = take_line();
    where_ = name_ + ":" + std::to_string(number_ - 1);
    TROUPE_TRY_SET(row_, parse_json(line, where_, numbers_));
    return &row_;
  }
  Result<void> skip(std::uint64_t rows) override {
    while (rows > 0) {
      if (left_.empty()) {
        TROUPE_TRY_ASSIGN(there, next_batch());
        if (!there) return too_few(name_);
      }
      for (; rows > 0 && !left_.empty(); --rows)
        take_line();
    }
    return {};
  }
  const std::string& where() const override { return where_; }

 private:
  Result<bool> next_batch() {
    TROUPE_TRY_ASSIGN(batch, file_.next());
    left_ = batch.lines;
    number_ = batch.first;
    return batch.rows > 0;
  }
  std::string_view take_line() {
    const std::string_view line = left_.substr(0, left_.find('\n'));
    left_.remove_prefix(std::min(left_.size(), line.size() + 1));
    ++number_;
    return line;
  }

  tables::TableFile file_;
  const std::string name_;
  const parse::Numbers numbers_;
  std::string_view left_;     // of the batch
  std::uint64_t number_ = 0;  // of the first row of it
  std::string where_;
  Json row_;
};

Result<std::unique_ptr<RowSource>> open_table(const fs::path& file,
                                              tables::TableKind kind,
                                              parse::Numbers numbers) {
  TROUPE_TRY_ASSIGN(table, tables::TableFile::open(file, kind));
  return std::unique_ptr<RowSource>(
      std::make_unique<Table>(std::move(table), file.string(), numbers));
}

}  // namespace

Result<std::unique_ptr<RowSource>> RowSource::open(const fs::path& file,
                                                   std::string_view key,
                                                   parse::Numbers numbers) {
  TROUPE_TRY(check_rows_file(file, key));
  const FileKind kind = kind_of_file(file);
  switch (kind.rows) {
    case RowsKind::kParquet:
      return open_table(file, tables::TableKind::kParquet, numbers);
    case RowsKind::kArrowFile:
      return open_table(file, tables::TableKind::kArrowFile, numbers);
    case RowsKind::kArrowStream:
      return open_table(file, tables::TableKind::kArrowStream, numbers);
    default:
      break;
  }
  TROUPE_TRY_ASSIGN(input, RowInput::open(file, kind.packing));
  std::string name = file.string();
  if (kind.rows == RowsKind::kCsv) return Csv::open(std::move(input), std::move(name));
  if (kind.rows == RowsKind::kList) return List::open(std::move(input), std::move(name), numbers);
  return std::unique_ptr<RowSource>(
      std::make_unique<Lines>(std::move(input), std::move(name), numbers));
}

Result<void> RowSource::skip(std::uint64_t rows) {
  for (; rows > 0; --rows) {
    TROUPE_TRY_ASSIGN(row, next());
    if (row == nullptr) return too_few(where());
  }
  return {};
}

std::string place_of_row(std::string_view file, std::uint64_t number) {
  const bool is_list = kind_of_name(file).rows == RowsKind::kList;
  return std::string(file) + (is_list ? " item " : ":") + std::to_string(number);
}

}  // namespace troupe::data
