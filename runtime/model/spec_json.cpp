#include "runtime/model/spec_json.hpp"

#include "runtime/parse/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::model {

using nlohmann::json;

const json* ConfigReader::find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool ConfigReader::is_null(const char* key) const {
  const auto it = object_.find(key);
  return it != object_.end() && it->is_null();
}

core::Failure ConfigReader::malformed(const std::string& why, std::string_view advice) const {
  return core::fail(ErrorCode::kData, where_ + ": " + why, advice);
}

core::Failure ConfigReader::unsupported(const std::string& what, std::string_view advice) const {
  return core::fail(ErrorCode::kUnsupported, where_ + ": not offered: " + what, advice);
}

Result<std::int64_t> ConfigReader::whole(const char* key,
                                         std::int64_t low,
                                         std::int64_t high,
                                         std::int64_t fallback) const {
  const json* value = find(key);
  if (value == nullptr) {
    if (fallback >= 0) return fallback;
    return malformed("needs `" + std::string(key) + "`");
  }
  if (value->is_number_integer()) {
    const bool too_large = value->is_number_unsigned() &&
                           value->get<std::uint64_t>() > static_cast<std::uint64_t>(high);
    if (!too_large && value->get<std::int64_t>() >= low) return value->get<std::int64_t>();
  }
  return malformed("`" + std::string(key) + "` is " + value->dump() + ", not a whole number from " +
                   std::to_string(low) + " to " + std::to_string(high));
}

Result<double> ConfigReader::number(const char* key, double fallback) const {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return malformed("`" + std::string(key) + "` is " + value->dump() + ", not a number");
  }
  return value->get<double>();
}

Result<bool> ConfigReader::flag(const char* key, bool fallback) const {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    return malformed("`" + std::string(key) + "` is " + value->dump() + ", not true or false");
  }
  return value->get<bool>();
}

Result<std::string> ConfigReader::text(const char* key, const std::string& fallback) const {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) {
    return malformed("`" + std::string(key) + "` is " + value->dump() + ", not a string");
  }
  return value->get<std::string>();
}

Result<json> parse_config_json(const std::string& text, const std::string& where) {
  auto document = parse::bounded_json<json>(text, {.depth_max = 16});
  if (!document) return core::fail(ErrorCode::kData, where + " " + document.error().message);
  if (!document->is_object()) return core::fail(ErrorCode::kData, where + ": not a JSON object");
  return document;
}

}  // namespace troupe::model
