#include "apps/serving/json_fields.hpp"

#include "runtime/core/edit_distance.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace troupe::app {

using nlohmann::json;

namespace {

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

const json* JsonFields::find(std::string_view name) {
  read_.emplace(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::boolean(std::string_view name, bool fallback) {
  const json* value = find(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  complain(name, "must be true or false");
  return fallback;
}

std::int64_t JsonFields::integer(std::string_view name,
                                 std::int64_t fallback,
                                 std::int64_t min,
                                 std::int64_t max) {
  const json* value = find(name);
  if (value == nullptr) return fallback;
  const bool huge = value->is_number_unsigned() &&
                    value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (!value->is_number_integer()) {
    complain(name, "must be a whole number");
    return fallback;
  }
  const std::int64_t given = huge ? INT64_MAX : value->get<std::int64_t>();
  if (given >= min && given <= max && !huge) return given;
  complain(name, "is " + value->dump() + "; it must be between " + std::to_string(min) + " and " +
                     std::to_string(max));
  return fallback;
}

float JsonFields::number(std::string_view name, double fallback, double min, double max) {
  const auto otherwise = static_cast<float>(fallback);
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    complain(name, "must be a number");
    return otherwise;
  }
  const double given = value->get<double>();
  if (std::isfinite(given) && given >= min && given <= max) return static_cast<float>(given);
  complain(name, "is " + number_text(given) + "; it must be between " + number_text(min) + " and " +
                     number_text(max));
  return otherwise;
}

std::string JsonFields::text(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  complain(name, "must be a string");
  return {};
}

void JsonFields::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    read_.emplace(name);
}

void JsonFields::complain(std::string_view name, const std::string& why) {
  if (error_) return;
  const std::string whole = where_ + std::string(name);
  error_ = ApiError{.message = "'" + whole + "' " + why, .param = whole};
}

void JsonFields::take_over(const JsonFields& inner) {
  if (!error_) error_ = inner.error_;
}

void JsonFields::end() {
  for (const auto& [name, value] : object_.items()) {
    if (read_.contains(name)) continue;
    const std::string shown = name.substr(0, 64);
    const std::vector<std::string_view> known(read_.begin(), read_.end());
    const std::string near(core::nearest_word(shown, known));
    complain(shown, "is no field that this server knows" +
                        (near.empty() ? "" : "; did you mean '" + where_ + near + "'?"));
    return;
  }
}

}  // namespace troupe::app
