// The part of an address after '?', as "mode=keep&tags=weights&tags=kv_cache". Values are taken as
// they stand: none of those that are asked for needs escapes. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::app {

inline std::vector<std::string> query_values(std::string_view query, std::string_view name) {
  std::vector<std::string> values;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(pair.size() == query.size() ? pair.size() : pair.size() + 1);
    const auto cut = pair.find('=');
    if (pair.substr(0, cut) != name) continue;
    values.emplace_back(cut == pair.npos ? std::string_view() : pair.substr(cut + 1));
  }
  return values;
}

inline std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  std::vector<std::string> values = query_values(query, name);
  if (values.empty()) return std::nullopt;
  return std::move(values.front());
}

}  // namespace troupe::app
