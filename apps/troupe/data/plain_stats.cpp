#include "apps/troupe/data/plain_stats.hpp"

#include "apps/troupe/data/spread_words.hpp"
#include "runtime/data/chat_rows.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <functional>

namespace troupe::app {
namespace {

const char* kind_of(const data::Json& value) {
  switch (value.type()) {
    case data::Json::value_t::null:
      return "null";
    case data::Json::value_t::boolean:
      return "boolean";
    case data::Json::value_t::string:
      return "text";
    case data::Json::value_t::array:
      return "list";
    case data::Json::value_t::object:
      return "object";
    default:  // with numbers that are kept as they were written
      return "number";
  }
}

}  // namespace

Result<void> PlainStats::add(const data::Json& row) {
  ++rows_;
  hashes_.insert(std::hash<std::string>{}(parse::written_text(row)));
  for (const auto& [name, value] : row.items()) {
    if (!columns_.contains(name)) order_.push_back(name);
    Column& column = columns_[name];
    ++column.kinds[kind_of(value)];
    if (value.is_string()) column.bytes.push_back(value.get_ref<const std::string&>().size());
    TROUPE_TRY(count_tokens(value, column));
  }
  return {};
}

Result<void> PlainStats::count_tokens(const data::Json& value, Column& column) const {
  if (tokenizer_ == nullptr) return {};
  const auto text =
      data::text_of_column(value, chat_, text::RenderOptions::with(text::ChatInputs(), false));
  if (!text) return {};
  TROUPE_TRY_ASSIGN(ids, tokenizer_->ids(*text, false));
  column.tokens.push_back(ids.size());
  return {};
}

std::vector<std::string> PlainStats::lines() const {
  std::vector<std::string> out;
  out.push_back("rows: " + std::to_string(rows_) + ", " + std::to_string(rows_ - hashes_.size()) +
                " of them repeat another");
  for (const std::string& name : order_) {
    const Column& column = columns_.at(name);
    std::string kinds;
    std::uint64_t there = 0;
    for (const auto& [kind, count] : column.kinds) {
      kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
      there += count;
    }
    if (there < rows_) kinds += ", " + std::to_string(rows_ - there) + " absent";
    out.push_back("column " + name + ": " + kinds);
    if (!column.bytes.empty()) out.push_back("  bytes  " + spread_words(column.bytes));
    if (!column.tokens.empty()) out.push_back("  tokens " + spread_words(column.tokens));
  }
  return out;
}

nlohmann::ordered_json PlainStats::json() const {
  auto columns = nlohmann::ordered_json::array();
  for (const std::string& name : order_) {
    const Column& column = columns_.at(name);
    nlohmann::ordered_json one = {{"name", name}, {"kinds", column.kinds}};
    if (!column.bytes.empty()) one["bytes"] = spread_json(column.bytes);
    if (!column.tokens.empty()) one["tokens"] = spread_json(column.tokens);
    columns.push_back(std::move(one));
  }
  return {{"rows", rows_}, {"repeated_rows", rows_ - hashes_.size()}, {"columns", columns}};
}

}  // namespace troupe::app
