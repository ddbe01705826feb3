#include "runtime/data/table_reader.hpp"

#include "runtime/data/csv_reader.hpp"
#include "runtime/data/foreign_file.hpp"
#include "runtime/data/limits.hpp"
#include "runtime/parse/bounded_json.hpp"

#include <fstream>
#include <iterator>

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;
using core::Result;

constexpr int kDepth_max = 64;
constexpr std::size_t kColumns_max = 4096;  // columns of a row, and names in any object of a row
constexpr std::uint64_t kFile_bytes_max = 4ull << 30;
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

// Reads the next line without its newline; false at the end of the file. Stops after `bytes_max` +
// 1 bytes, so that the caller can refuse a longer line.
bool next_line(std::istream& in, std::string& line, std::uint64_t bytes_max) {
  constexpr int kEnd = std::char_traits<char>::eof();
  line.clear();
  int c = in.rdbuf()->sbumpc();
  if (c == kEnd) return false;
  for (; c != kEnd && c != '\n' && line.size() <= bytes_max; c = in.rdbuf()->sbumpc()) {
    line += static_cast<char>(c);
  }
  return true;
}

core::Failure bad_place(const std::string& where,
                        const std::string& why,
                        std::string_view advice = {}) {
  return fail(ErrorCode::kData, where + ": " + why, advice);
}

Result<bool> give(const Json& row, const std::string& where, const TakeRow& take) {
  if (!row.is_object()) return bad_place(where, "expected a JSON object");
  auto more = take(row, where);
  if (!more) return fail(more.error().within(where));
  return more;
}

Result<void> read_lines(std::istream& in,
                        const fs::path& file,
                        parse::Numbers numbers,
                        const TakeRow& take) {
  std::string line;
  for (std::uint64_t number = 1; next_line(in, line, kRow_bytes_max); ++number) {
    const std::string where = file.string() + ":" + std::to_string(number);
    if (line.size() > kRow_bytes_max) {
      return bad_place(where, "line longer than " + std::to_string(kRow_bytes_max >> 20) + " MiB");
    }
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    TROUPE_TRY_ASSIGN(json, parse_json(number == 1 ? without_mark(line) : line, where, numbers));
    TROUPE_TRY_ASSIGN(more, give(json, where, take));
    if (!more) break;
  }
  return {};
}

Result<void> read_array(std::istream& in,
                        const fs::path& file,
                        parse::Numbers numbers,
                        const TakeRow& take) {
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  TROUPE_TRY_ASSIGN(json, parse_json(without_mark(text), file.string(), numbers));
  if (!json.is_array()) {
    return bad_place(file.string(), "expected a list of objects",
                     "a file with one object a line must be called .jsonl");
  }
  std::uint64_t number = 0;
  for (const Json& item : json) {
    TROUPE_TRY_ASSIGN(more, give(item, file.string() + " item " + std::to_string(++number), take));
    if (!more) break;
  }
  return {};
}

Result<void> read_csv(std::istream& in, const fs::path& file, const TakeRow& take) {
  CsvReader reader(in, file.string(), kRow_bytes_max);
  TROUPE_TRY_ASSIGN(header, reader.next());
  if (!header) return {};
  const std::vector<std::string> names = std::move(header->fields);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return bad_place(header->where, "the header has a column without a name");
    for (std::size_t j = 0; j < i; ++j) {
      if (names[j] == names[i]) return bad_place(header->where, "two columns '" + names[i] + "'");
    }
  }
  for (;;) {
    TROUPE_TRY_ASSIGN(record, reader.next());
    if (!record) return {};
    if (record->fields.size() != names.size()) {
      return bad_place(record->where, std::to_string(record->fields.size()) +
                                          " fields, the header has " +
                                          std::to_string(names.size()));
    }
    Json row = Json::object();
    for (std::size_t i = 0; i < names.size(); ++i)
      row[names[i]] = std::move(record->fields[i]);
    TROUPE_TRY_ASSIGN(more, give(row, record->where, take));
    if (!more) return {};
  }
}

}  // namespace

core::Failure bad_row(std::string why, std::string_view advice) {
  return fail(ErrorCode::kData, std::move(why), advice);
}

Result<void> read_table(const fs::path& file,
                        std::string_view key,
                        parse::Numbers numbers,
                        const TakeRow& take) {
  TROUPE_TRY(check_rows_file(file, key));
  std::error_code error;
  if (fs::file_size(file, error) > kFile_bytes_max) {
    return bad_place(file.string(), "larger than 4 GiB", "split it and give the parts");
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) return bad_place(file.string(), "cannot be read", "check its permissions");
  if (file.extension() == ".csv") return read_csv(in, file, take);
  return file.extension() == ".json" ? read_array(in, file, numbers, take)
                                     : read_lines(in, file, numbers, take);
}

std::vector<std::string> split_files(std::string_view files) {
  std::vector<std::string> names;
  while (!files.empty()) {
    const auto comma = files.find(',');
    const std::string_view name = files.substr(0, comma);
    if (!name.empty()) names.emplace_back(name);
    files.remove_prefix(comma == files.npos ? files.size() : comma + 1);
  }
  return names;
}

std::string columns_of(const Json& row) {
  std::string out;
  for (const auto& [key, value] : row.items())
    out += (out.empty() ? "" : ", ") + key;
  return out.size() > 200 ? out.substr(0, 200) + "..." : out;
}

Result<const Json*> column(const Json& row, const std::string& key, std::string_view flag) {
  const auto found = row.find(key);
  if (found != row.end()) return &*found;
  return bad_row("no column '" + key + "'",
                 "set --" + std::string(flag) + " to one of: " + columns_of(row));
}

std::string fill_template(const std::string& pattern, const std::string& prompt) {
  const auto hole = pattern.find("{}");
  if (hole == pattern.npos) return prompt;
  return pattern.substr(0, hole) + prompt + pattern.substr(hole + 2);
}

}  // namespace troupe::data
