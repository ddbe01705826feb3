// The set that a row belongs to, by the column that names it. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::app {

// Empty: the row names none.
inline std::string source_of(const nlohmann::ordered_json& columns, const std::string& key) {
  const auto found = columns.find(key);
  if (found == columns.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace troupe::app
