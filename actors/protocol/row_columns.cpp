// Selection by name.
#include "actors/protocol/row_columns.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::actors {

bool RowColumns::cover(const RowColumns& wanted) const {
  if (all) return true;
  if (wanted.all) return false;
  return std::all_of(wanted.names.begin(), wanted.names.end(), [this](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

std::string RowColumns::text() const {
  if (all) return "all";
  std::string listed;
  for (const std::string& name : names)
    listed += (listed.empty() ? "" : ", ") + name;
  return listed.empty() ? "none" : listed;
}

std::string row_with(const std::string& row, const RowColumns& columns) {
  using nlohmann::ordered_json;
  if (columns.all) return row;
  ordered_json kept = ordered_json::object();
  if (columns.names.empty()) return kept.dump();
  const ordered_json whole = ordered_json::parse(row, nullptr, false);
  if (!whole.is_object()) return kept.dump();
  for (const auto& [name, value] : whole.items()) {
    const auto wanted = std::find(columns.names.begin(), columns.names.end(), name);
    if (wanted != columns.names.end()) kept[name] = value;
  }
  return kept.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace troupe::actors
