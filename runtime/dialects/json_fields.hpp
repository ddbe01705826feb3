// Parses the JSON body of a request within bounds, and reads it field by field with checks. One
// thread.
#pragma once

#include "runtime/dialects/generate_request.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace troupe::dialects {

using json = nlohmann::ordered_json;

// Parses a body that must be a JSON object, at most kJsonDepth_max deep and within `bounds`.
std::variant<nlohmann::ordered_json, ApiError> read_object(const std::string& body,
                                                           const ServeBounds& bounds);

// Reads the fields of one JSON object, which must outlive the reader. Each read checks type and
// range, and treats null as absent; `end` refuses fields that were not read. Keeps the first error,
// which names its field; a failed read returns its fallback.
class JsonFields {
 public:
  // `where` precedes field names in errors, such as "stream_options.".
  explicit JsonFields(const nlohmann::ordered_json& object, std::string where = "")
      : object_(object), where_(std::move(where)) {}

  // The value of any type; a null pointer if it is absent or JSON null.
  const nlohmann::ordered_json* find(std::string_view name);

  bool boolean(std::string_view name, bool fallback);
  std::int64_t integer(std::string_view name,
                       std::int64_t fallback,
                       std::int64_t min,
                       std::int64_t max);
  float number(std::string_view name, double fallback, double min, double max);
  std::string text(std::string_view name);  // "" when absent

  // Accepts these fields without reading them: they have no effect here.
  void ignore(std::initializer_list<std::string_view> names);

  // Complains about those of these fields that hold something.
  void unsupported(std::initializer_list<std::string_view> names);

  // Sets the error "'name' why", unless there is one.
  void complain(std::string_view name, const std::string& why);
  void take_over(const JsonFields& inner);  // takes the error of `inner`, unless there is one

  // Sets an error for the first field that was not read; it suggests the most similar known field.
  void end();

  const std::optional<ApiError>& error() const noexcept { return error_; }

 private:
  const nlohmann::ordered_json& object_;
  const std::string where_;
  std::set<std::string, std::less<>> read_;
  std::optional<ApiError> error_;
};

}  // namespace troupe::dialects
