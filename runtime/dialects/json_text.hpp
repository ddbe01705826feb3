// JSON as clients and templates get it: on one line, with numbers as they were written and bytes
// that are no UTF-8 replaced. Pure functions; any thread.
#pragma once

#include "runtime/net/http.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::dialects {

inline std::string json_text(const nlohmann::ordered_json& value) {
  return parse::written_text(value);
}

inline net::HttpResponse json_response(const nlohmann::ordered_json& value) {
  net::HttpResponse response;
  response.body = json_text(value);
  return response;
}

}  // namespace troupe::dialects
