// Converts the value of one key from text, checked against its row, and back to YAML text.
#include "runtime/config/refuse.hpp"
#include "runtime/config/table.hpp"
#include "runtime/core/bool_word.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/texts.hpp"

#include <charconv>
#include <cmath>
#include <type_traits>

namespace troupe::config {
namespace {

std::string text_of(Float value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Prints a bound as a whole number if it is one.
std::string bound_text(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : text_of(value);
}

std::string in_quotes(std::string_view text) {
  constexpr std::string_view kPlain = "\"\\\n\t\r", kEscaped = "\"\\ntr";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const auto at = kPlain.find(c); at != kPlain.npos) {
      (out += '\\') += kEscaped[at];
    } else if (byte < 0x20 || byte == 0x7F) {
      out += core::printed("\\x%02X", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(Int value) {
  return std::to_string(value);
}
std::string text_of(const Text& value) {
  return in_quotes(value);
}
std::string text_of(const Device& value) {
  return in_quotes(value.text());
}
template <class Item>
std::string text_of(const std::vector<Item>& items) {
  std::string out = "[";
  for (const Item& item : items)
    (out += out.size() > 1 ? ", " : "") += text_of(item);
  return out + "]";
}

// Parses one setting and assigns it to the member of its row.
class Parser {
 public:
  Parser(const Row& row, const Setting& setting) : row_(row), setting_(setting) {}

  Result<void> assign(const ChoiceAccess& choice, TrainConfig& config) const {
    TROUPE_TRY(check_single());
    TROUPE_TRY_ASSIGN(number, number_of_word(setting_.values.front()));
    choice.set(config, number);
    return {};
  }

  template <class T>
  Result<void> assign(Access<T> access, TrainConfig& config) const {
    TROUPE_TRY(check_single());
    if constexpr (std::is_same_v<T, Text>) {
      // An empty text is allowed if it is the default: the choice may be unset.
      TrainConfig defaults = default_config();
      if (setting_.values.front().empty() && access(defaults).empty()) {
        access(config).clear();
        return {};
      }
    }
    return parse(setting_.values.front(), access(config));
  }

  template <class Item>
  Result<void> assign(Access<std::vector<Item>> access, TrainConfig& config) const {
    std::vector<Item> items;
    // An empty text is an empty list: a key that once was a text may be written so.
    const bool none = std::is_same_v<Item, Text> && !setting_.is_list &&
                      setting_.values == std::vector<std::string>{""};
    for (const std::string& written : none ? std::vector<std::string>() : setting_.values) {
      if (std::is_same_v<Item, Text> && written.empty()) return bad("an empty item means nothing");
      TROUPE_TRY(parse(written, items.emplace_back()));
    }
    // An empty list is allowed if it is the default: the key may be unset.
    TrainConfig defaults = default_config();
    const bool unsets = items.empty() && access(defaults).empty();
    if (row_.count != 0 && items.size() != row_.count && !unsets) {
      return bad("expected ", row_.count, " values, got ", items.size());
    }
    access(config) = std::move(items);
    return {};
  }

 private:
  core::Failure bad(const auto&... why) const {
    return refuse(setting_.where, ": ", row_.name, ": ", why...);
  }
  core::Failure bad_value(std::string_view written, const auto&... why) const {
    return refuse(setting_.where, ": ", row_.name, " = ", written, ": ", why...);
  }

  Result<void> check_single() const {
    if (!setting_.is_list && setting_.values.size() == 1) return {};
    return bad("expected one ", row_.type_name(), ", got a list of ", setting_.values.size());
  }

  Result<void> parse(const std::string& written, bool& out) const {
    const auto meant = core::bool_word(written);
    if (!meant) return bad_value(written, "expected true or false");
    out = *meant;
    return {};
  }

  Result<void> parse(const std::string& written, Int& out) const {
    return parse_number(written, "a whole number", out);
  }
  Result<void> parse(const std::string& written, Float& out) const {
    return parse_number(written, "a number", out);
  }
  template <class Number>
  Result<void> parse_number(const std::string& written, std::string_view kind, Number& out) const {
    const std::string range = row_.range_text();
    const std::string expected =
        joined("expected ", range, row_.unit.empty() ? "" : " ", row_.unit);
    if (row_.never && (written == "-1" || written == "-1.0")) return out = 0, Result<void>();
    const char* begin = written.data() + (written.starts_with('+') ? 1 : 0);
    const char* end = written.data() + written.size();
    Number value{};
    const auto [last, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range) {
      return bad_value(written, "too large or too small for a number, ", expected);
    }
    if (error != std::errc{} || last != end) {
      return bad_value(written, "expected ", kind, ", ", range);
    }
    const auto number = static_cast<double>(value);
    if (!std::isfinite(number)) return bad_value(written, "expected a finite number");
    const auto& [min, max, above] = row_.range;
    if (number < min || (above && number == min) || number > max) {
      return bad_value(written, "out of range, ", expected);
    }
    out = value;
    return {};
  }

  Result<void> parse(const std::string& written, Text& out) const {
    out = written;
    if (row_.words.empty()) return {};
    TROUPE_TRY_ASSIGN(number, number_of_word(written));
    out = row_.words[number].name;
    return {};
  }

  Result<void> parse(const std::string& written, Device& out) const {
    const auto device = core::parse_device(written);
    if (!device) return bad_value(written, saying_of(device.error()));
    out = *device;
    return {};
  }

  Result<std::size_t> number_of_word(const std::string& written) const {
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < row_.words.size(); ++i) {
      const auto& [name, alias, help] = row_.words[i];
      if (written == name || (!alias.empty() && written == alias)) return i;
      words.push_back(name);
      if (!alias.empty()) words.push_back(alias);
    }
    const std::string_view near = core::nearest_word(written, words);
    return bad_value(written, "expected one of ", row_.range_text(),
                     near.empty() ? Saying() : Saying{"", joined("did you mean '", near, "'?")});
  }

  const Row& row_;
  const Setting& setting_;
};

}  // namespace

core::Result<void> Row::set(TrainConfig& config, const Setting& setting) const {
  return std::visit([&](auto access) { return Parser(*this, setting).assign(access, config); },
                    field);
}

std::string Row::yaml(const TrainConfig& config) const {
  // Accessors return mutable references; here they are only read.
  auto& readable = const_cast<TrainConfig&>(config);
  if (const auto* choice = std::get_if<ChoiceAccess>(&field)) {
    return in_quotes(choice->words[choice->get(readable)]);
  }
  return std::visit(
      [&](auto access) -> std::string {
        if constexpr (std::is_same_v<decltype(access), ChoiceAccess>) {
          return {};
        } else {
          return text_of(access(readable));
        }
      },
      field);
}

std::string Row::type_name() const {
  if (is<Text>()) return words.empty() ? "text" : "choice";
  if (is<Floats>()) return count == 0 ? "floats" : joined(count, " floats");
  constexpr const char* kNames[] = {"bool",   "int",    "float",        "text",   "device",
                                    "choice", "floats", "list of text", "devices"};
  return kNames[field.index()];
}

std::string Row::range_text() const {
  std::string out;
  for (const auto& [word, alias, about] : words) {
    out += joined(out.empty() ? "" : " | ", word);
    if (!alias.empty()) out += joined(" (= ", alias, ")");
  }
  if (!words.empty()) return out;
  const bool low = std::isfinite(range.min), high = std::isfinite(range.max);
  if (low && range.above) out = "above ";
  if (low && !range.above && !high) out = "at least ";
  if (low) out += bound_text(range.min);
  if (low && high) out += range.above ? ", at most " : " to ";
  if (high) out += bound_text(range.max);
  return never ? out + ", or -1 for 0" : out;
}

std::string_view Row::section() const {
  return std::string_view(name).substr(0, name.find('.'));
}

}  // namespace troupe::config
