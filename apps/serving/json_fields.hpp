// Parses the JSON body of a request within bounds and reads it field by field. One thread.
#pragma once

#include "apps/serving/generate_request.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace troupe::app {

// The body as an object, at most kJsonDepth_max deep.
std::variant<nlohmann::json, ApiError> read_object(const std::string& body,
                                                   const ServeBounds& bounds);

// Reads the fields of one JSON object. Each read checks type and range and treats null as absent;
// `end` refuses fields that were not read. Keeps the first error with its field's name; a failed
// read returns its fallback. A view of the object, which must outlive it.
class JsonFields {
 public:
  // `where`: put in front of names, as "stream_options.".
  explicit JsonFields(const nlohmann::json& object, std::string where = "")
      : object_(object), where_(std::move(where)) {}

  // The value, whatever its type; null when absent or null.
  const nlohmann::json* find(std::string_view name);

  bool boolean(std::string_view name, bool fallback);
  std::int64_t integer(std::string_view name,
                       std::int64_t fallback,
                       std::int64_t min,
                       std::int64_t max);
  float number(std::string_view name, double fallback, double min, double max);
  std::string text(std::string_view name);  // "" when absent

  // Accepts these fields without reading them: they have no effect here.
  void ignore(std::initializer_list<std::string_view> names);

  void complain(std::string_view name, const std::string& why);
  void take_over(const JsonFields& inner);  // takes its error

  // Sets an error for the first field that was not read, naming the most similar known one.
  void end();

  const std::optional<ApiError>& error() const noexcept { return error_; }

 private:
  const nlohmann::json& object_;
  const std::string where_;
  std::set<std::string, std::less<>> read_;
  std::optional<ApiError> error_;
};

}  // namespace troupe::app
