// Members of JSON objects from files that are not trusted: of whatever kind they are. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace troupe::report {

// 0 for a member that is not a whole number.
inline std::uint64_t whole_number(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// The text, or another kind as JSON; empty for none.
inline std::string text_in(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace troupe::report
