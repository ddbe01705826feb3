#include "runtime/guide/schema_check.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace troupe::guide {
namespace {

using nlohmann::json;

// Key words whose values are data, not schemas.
constexpr std::string_view kData[] = {"const", "enum", "default", "examples"};

// The properties that each text of this schema has: those that it must have.
double certain_properties(const json& schema) {
  const json names = schema.value("properties", json::object());
  double count = 0;
  for (const json& name : schema.value("required", json::array())) {
    const bool listed =
        names.is_object() && name.is_string() && names.contains(name.get_ref<const std::string&>());
    count += listed ? 1 : 0;
  }
  return count;
}

// Whether `properties` names all that a text may have. Each of those is written at most once.
bool has_listed_names_alone(const json& schema) {
  const json patterns = schema.value("patternProperties", json::object());
  return schema.value("additionalProperties", json(true)) == json(false) && patterns.empty();
}

bool keeps_minimum(const json& schema) {
  const auto wanted = schema.find("minProperties");
  if (wanted == schema.end()) return true;
  const auto least = parse::number_in(*wanted);
  // The library itself reports a minimum that is not a number; one pair is one property.
  if (!least || *least <= 1) return true;
  return has_listed_names_alone(schema) || certain_properties(schema) >= *least;
}

// Whether a schema, and all within it, can be kept. `is_schema`: else its members are schemas, by
// name.
bool is_kept(const json& value, bool is_schema) {
  if (value.is_array()) {
    return std::all_of(value.begin(), value.end(),
                       [](const json& one) { return is_kept(one, true); });
  }
  if (!value.is_object()) return true;
  if (is_schema && !keeps_minimum(value)) return false;
  for (const auto& [name, inner] : value.items()) {
    const bool data = is_schema && std::ranges::find(kData, name) != std::end(kData);
    const bool by_name =
        is_schema && (name == "properties" || name == "patternProperties" || name == "$defs" ||
                      name == "definitions" || name == "dependentSchemas");
    if (!data && !is_kept(inner, !by_name)) return false;
  }
  return true;
}

}  // namespace

core::Result<void> check_schema(std::string_view schema) {
  const auto read = parse::bounded_json<json>(schema, {.numbers = parse::Numbers::kWholeIntegers});
  if (!read || is_kept(*read, true)) return {};
  return core::fail(core::ErrorCode::kInvalidArgument,
                    "the JSON schema has `minProperties` where names are open, and one name "
                    "written twice would satisfy it",
                    "list the names in `properties` with `additionalProperties` false, or make "
                    "them `required`");
}

}  // namespace troupe::guide
