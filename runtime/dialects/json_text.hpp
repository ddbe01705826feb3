// The text of JSON as clients get it: on one line, with bytes that are no UTF-8 replaced. A pure
// function; any thread.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::dialects {

inline std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace troupe::dialects
