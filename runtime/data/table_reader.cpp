#include "runtime/data/table_reader.hpp"

namespace troupe::data {

core::Failure bad_row(std::string why, std::string_view advice) {
  return fail(ErrorCode::kData, std::move(why), advice);
}

Result<void> read_table(const std::filesystem::path& file,
                        std::string_view key,
                        parse::Numbers numbers,
                        const TakeRow& take) {
  TROUPE_TRY_ASSIGN(rows, RowSource::open(file, key, numbers));
  for (;;) {
    TROUPE_TRY_ASSIGN(row, rows->next());
    if (row == nullptr) return {};
    const auto more = take(*row, rows->where());
    if (!more) return fail(more.error().within(rows->where()));
    if (!*more) return {};
  }
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
