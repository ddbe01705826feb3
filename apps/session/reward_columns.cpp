#include "apps/session/reward_columns.hpp"

#include "runtime/data/row_format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::session {

RowColumns columns_of_rows(const std::vector<data::PromptRow>& rows, std::string from) {
  RowColumns columns;
  columns.from = std::move(from);
  columns.has = [&rows](const std::string& name) {
    return std::ranges::any_of(rows, [&name](const data::PromptRow& row) {
      const auto parsed = nlohmann::json::parse(row.columns_json, nullptr, false);
      return parsed.is_object() && parsed.contains(name);
    });
  };
  columns.all = "none";
  if (rows.empty()) return columns;
  const auto first = nlohmann::ordered_json::parse(rows.front().columns_json, nullptr, false);
  if (first.is_object()) columns.all = data::columns_of(first);
  return columns;
}

core::Result<void> check_needs(const std::string& key,
                               const std::string& file,
                               const std::vector<std::string>& needs,
                               const RowColumns& columns) {
  core::ErrorList wrong;
  for (const std::string& name : needs) {
    if (columns.has(name)) continue;
    wrong.add(core::ErrorCode::kConfig,
              key + ": the function of " + file + " takes '" + name + "', and " + columns.from +
                  " has no column '" + name + "'",
              "there are: " + columns.all);
  }
  return wrong.result();
}

}  // namespace troupe::session
