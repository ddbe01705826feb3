// A row of a .jsonl file as `generate --data`, `score` and `eval` write it: one line with its
// newline; bytes that are no UTF-8 become U+FFFD. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::app {

inline std::string json_line(const nlohmann::ordered_json& row) {
  return row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace troupe::app
