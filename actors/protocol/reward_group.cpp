#include "actors/protocol/reward_group.hpp"

#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::actors {

bool RewardReads::cover(const RewardReads& wanted) const {
  if ((wanted.messages && !messages) || (wanted.tokens && !tokens)) return false;
  if (all_columns) return true;
  if (wanted.all_columns) return false;
  const auto& have = columns;
  return std::all_of(wanted.columns.begin(), wanted.columns.end(), [&have](const auto& name) {
    return std::find(have.begin(), have.end(), name) != have.end();
  });
}

std::string RewardReads::text() const {
  std::string listed = all_columns ? "all columns" : "";
  for (const std::string& name : columns)
    listed += (listed.empty() ? "columns " : ", ") + name;
  for (const auto& [read, name] : {std::pair{messages, "messages"}, {tokens, "tokens"}}) {
    if (read) listed += (listed.empty() ? "" : "; ") + std::string(name);
  }
  return listed.empty() ? "nothing" : listed;
}

std::string row_with(const std::string& row, const RewardReads& reads) {
  using nlohmann::ordered_json;
  if (reads.all_columns) return row;
  ordered_json kept = ordered_json::object();
  if (reads.columns.empty()) return kept.dump();
  const ordered_json whole = parse::written_json<ordered_json>(row);
  if (!whole.is_object()) return kept.dump();
  for (const auto& [name, value] : whole.items()) {
    const auto wanted = std::find(reads.columns.begin(), reads.columns.end(), name);
    if (wanted != reads.columns.end()) kept[name] = value;
  }
  return parse::written_text(kept);
}

}  // namespace troupe::actors
