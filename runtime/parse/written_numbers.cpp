#include "runtime/parse/written_numbers.hpp"

#include "runtime/parse/bounded_json.hpp"

#include <cstdlib>
#include <utility>

namespace troupe::parse {
namespace {

constexpr std::uint64_t kWrittenNumber = 0x6e756d62;  // the subtype

template <class Json>
bool is_written(const Json& value) {
  return value.is_binary() && value.get_binary().has_subtype() &&
         value.get_binary().subtype() == kWrittenNumber;
}

template <class Json>
std::string spelling_of(const Json& value) {
  return {value.get_binary().begin(), value.get_binary().end()};
}

template <class Json>
bool holds_written(const Json& value) {
  if (!value.is_structured()) return is_written(value);
  for (const Json& one : value) {
    if (holds_written(one)) return true;
  }
  return false;
}

template <class Json>
std::string plain_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Json>
void append(std::string& out, const Json& value) {
  if (is_written(value)) {
    out += spelling_of(value);
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ',';
      append(out, value[i]);
    }
    out += ']';
  } else if (value.is_object()) {
    out += '{';
    for (auto one = value.begin(); one != value.end(); ++one) {
      if (one != value.begin()) out += ',';
      out += plain_text(Json(one.key())) + ':';
      append(out, one.value());
    }
    out += '}';
  } else {
    out += plain_text(value);
  }
}

}  // namespace

template <class Json>
std::string written_text(const Json& value) {
  if (!holds_written(value)) return plain_text(value);
  std::string out;
  append(out, value);
  return out;
}

template <class Json>
Json written_json(std::string_view text) {
  constexpr int kDepth_max = 512;  // above what any reader of foreign JSON lets in
  auto read = bounded_json<Json>(text, {.depth_max = kDepth_max, .numbers = Numbers::kAsWritten});
  return read ? std::move(*read) : Json(Json::value_t::discarded);
}

template <class Json>
std::optional<double> number_in(const Json& value) {
  if (value.is_number()) return value.template get<double>();
  if (is_written(value)) return std::strtod(spelling_of(value).c_str(), nullptr);
  return std::nullopt;
}

template <class Json>
Json with_nearest_numbers(const Json& value) {
  if (is_written(value)) return Json::parse(spelling_of(value));
  if (!holds_written(value)) return value;
  Json out = value;
  for (Json& one : out)
    one = with_nearest_numbers(one);
  return out;
}

template <class Json>
Json written_number(std::string_view spelling) {
  return Json::binary({spelling.begin(), spelling.end()}, kWrittenNumber);
}

template std::string written_text(const nlohmann::json& value);
template std::string written_text(const nlohmann::ordered_json& value);
template nlohmann::json written_json(std::string_view text);
template nlohmann::ordered_json written_json(std::string_view text);
template std::optional<double> number_in(const nlohmann::json& value);
template std::optional<double> number_in(const nlohmann::ordered_json& value);
template nlohmann::json with_nearest_numbers(const nlohmann::json& value);
template nlohmann::ordered_json with_nearest_numbers(const nlohmann::ordered_json& value);
template nlohmann::json written_number(std::string_view spelling);
template nlohmann::ordered_json written_number(std::string_view spelling);

}  // namespace troupe::parse
