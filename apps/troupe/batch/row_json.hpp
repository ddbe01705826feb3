// Rows of .jsonl files as `generate --data`, `score` and `eval` read and write them. Pure; any
// thread.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::app {

// One line with its newline; bytes that are no UTF-8 become U+FFFD.
inline std::string json_line(const nlohmann::ordered_json& row) {
  return row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// The set that a row belongs to, by the column that names it. Empty: the row names none.
inline std::string source_of(const nlohmann::ordered_json& columns, const std::string& key) {
  const auto found = columns.find(key);
  if (found == columns.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace troupe::app
