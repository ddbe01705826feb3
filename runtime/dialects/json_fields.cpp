#include "runtime/dialects/json_fields.hpp"

#include "runtime/core/edit_distance.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/dialects/json_text.hpp"
#include "runtime/engine/request_check.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <array>
#include <cmath>
#include <vector>

namespace troupe::dialects {

namespace {

// In one object, whose names are looked for one by one; above what any list's own bound allows.
constexpr std::size_t kNames_max = 2048;

// Counts values while the JSON is parsed, and stops the parser when a bound is exceeded, so that a
// body costs no more than its bytes and a bounded number of values. There are bounds for the lists
// that the engine bounds (logit_bias, stop, stop_token_ids), for the number of prompts, for each
// list of token ids, and for all other values together.
class BodyWatch final : public parse::JsonWatch {
 public:
  explicit BodyWatch(const ServeBounds& bounds) : bounds_(bounds) {}

  void key(std::size_t depth, const std::string& name) override {
    if (depth == 1) field_ = name.substr(0, 64);
  }

  // Counts one value in the current list or object.
  bool value(std::size_t depth, bool is_number) override {
    counts_.resize(depth);  // deeper lists and objects are closed
    if (depth == 0) return true;
    const std::size_t now = ++counts_.back();
    const bool ids = is_number && ((field_ == "prompt" && (depth == 2 || depth == 3)) ||
                                   ((field_ == "tokens" || field_ == "token_ids") && depth == 2));
    if (ids) return now <= bounds_.tokens_max || too_many_ids();
    for (const ListBound& list : list_bounds_) {
      if (depth != 2 || field_ != list.field || now <= list.most) continue;
      return refuse("'" + field_ + "' holds more than the " + std::to_string(list.most) + " " +
                    list.what + " that are taken");
    }
    if (++values_ <= bounds_.values_max) return true;
    return refuse("the JSON has more than " + std::to_string(bounds_.values_max) + " values" +
                  (field_.empty() ? "" : " up to '" + field_ + "'") +
                  ", token ids of prompts not counted");
  }

  const std::optional<ApiError>& error() const { return error_; }

 private:
  struct ListBound {
    std::string_view field;
    std::size_t most;
    const char* what;
  };

  bool refuse(std::string message) {
    error_ = ApiError{.message = std::move(message), .param = field_};
    return false;
  }
  bool too_many_ids() {
    refuse("'" + field_ + "' holds a list of more than " + std::to_string(bounds_.tokens_max) +
           " token ids, the most that are taken");
    if (field_ != "tokens") error_->code = "context_length_exceeded";
    return false;
  }

  const ServeBounds& bounds_;
  const std::array<ListBound, 5> list_bounds_ = {
      ListBound{"logit_bias", engine::kLogitBias_max, "entries"},
      ListBound{"stop", engine::kStopStrings_max, "strings"},
      ListBound{"stop_sequences", engine::kStopStrings_max, "strings"},
      ListBound{"stop_token_ids", engine::kStopTokens_max, "tokens"},
      ListBound{"prompt", static_cast<std::size_t>(bounds_.prompts_max), "prompts"}};
  std::vector<std::size_t> counts_;  // values so far in each list and object that is still open
  std::string field_;                // the field of the body that is being parsed
  std::size_t values_ = 0;           // all values except token ids
  std::optional<ApiError> error_;
};

}  // namespace

std::variant<json, ApiError> read_object(const std::string& body, const ServeBounds& bounds) {
  BodyWatch watch(bounds);
  auto value =
      parse::bounded_json<json>(body, {.depth_max = static_cast<int>(parse::limits::kJsonDepth_max),
                                       .watch = &watch,
                                       .names_max = kNames_max,
                                       .numbers = parse::Numbers::kWholeIntegers});
  if (watch.error()) return *watch.error();
  if (value && value->is_object()) return std::move(*value);
  return ApiError{.message =
                      value ? "the body is no JSON object" : "the body " + value.error().message};
}

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
  const bool huge = (value->is_number_unsigned() &&
                     value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) ||
                    (!value->is_number() && parse::number_in(*value));
  if (!value->is_number_integer() && !huge) {
    complain(name, "must be a whole number");
    return fallback;
  }
  const std::int64_t given = huge ? INT64_MAX : value->get<std::int64_t>();
  if (given >= min && given <= max && !huge) return given;
  complain(name, "is " + json_text(*value) + "; it must be between " + std::to_string(min) +
                     " and " + std::to_string(max));
  return fallback;
}

float JsonFields::number(std::string_view name, double fallback, double min, double max) {
  const auto otherwise = static_cast<float>(fallback);
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  const auto read = parse::number_in(*value);
  if (!read) {
    complain(name, "must be a number");
    return otherwise;
  }
  const double given = *read;
  if (std::isfinite(given) && given >= min && given <= max) return static_cast<float>(given);
  complain(name, core::printed("is %g; it must be between %g and %g", given, min, max));
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

void JsonFields::unsupported(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json* value = find(name);
    if (value != nullptr && !value->empty()) complain(name, "is not supported by this server");
  }
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
    complain(shown, "is not a field that this server knows" +
                        (near.empty() ? "" : "; did you mean '" + where_ + near + "'?"));
    return;
  }
}

}  // namespace troupe::dialects
