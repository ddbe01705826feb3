// Rows of the configuration table: how they are described, and how their values are printed.
#include "runtime/config/config_table.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <utility>

namespace troupe::config {
namespace {

std::string number_text(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string number_text(std::int64_t value) {
  return std::to_string(value);
}

// Bounds print as whole numbers where they are whole.
std::string bound_text(double value) {
  if (std::abs(value) < 1e15 && value == std::floor(value)) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  return number_text(value);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    char code[8];
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (byte < 0x20 || byte == 0x7F) {
          std::snprintf(code, sizeof code, "\\x%02X", byte);
          out += code;
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

template <class T>
std::string list_text(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) {
    if (out.size() > 1) out += ", ";
    if constexpr (std::is_same_v<T, double>) {
      out += number_text(value);
    } else {
      out += quoted(value);
    }
  }
  return out + "]";
}

}  // namespace

ConfigRow ConfigRow::help(std::string_view text) && {
  help_text = text;
  return std::move(*this);
}
ConfigRow ConfigRow::unit(std::string_view text) && {
  unit_text = text;
  return std::move(*this);
}
ConfigRow ConfigRow::peer(std::string_view text) && {
  peer_text = text;
  return std::move(*this);
}
ConfigRow ConfigRow::range(double low, double high) && {
  min = low;
  max = high;
  return std::move(*this);
}
ConfigRow ConfigRow::at_least(double low) && {
  min = low;
  return std::move(*this);
}
ConfigRow ConfigRow::above(double low, double high) && {
  above_min = true;
  return std::move(*this).range(low, high);
}
ConfigRow ConfigRow::one_of(std::vector<ConfigChoice> words) && {
  choices = std::move(words);
  return std::move(*this);
}
ConfigRow ConfigRow::items(std::size_t count) && {
  list_size = count;
  return std::move(*this);
}
ConfigRow ConfigRow::only(Methods readers) && {
  methods = readers;
  return std::move(*this);
}

ConfigRow ConfigRow::needed() && {
  required = true;
  return std::move(*this);
}
ConfigRow ConfigRow::with_escapes() && {
  escapes = true;
  return std::move(*this);
}

std::string ConfigRow::type_name() const {
  switch (field.index()) {
    case 0:
      return "bool";
    case 1:
      return "int";
    case 2:
      return "float";
    case 3:
      return choices.empty() ? "text" : "choice";
    case 4:
      return list_size == 0 ? "floats" : std::to_string(list_size) + " floats";
    default:
      return "list of text";
  }
}

std::string ConfigRow::range_text() const {
  if (!choices.empty()) {
    std::string out;
    for (const ConfigChoice& choice : choices) {
      if (choice.name.empty()) continue;
      if (!out.empty()) out += " | ";
      out += choice.name;
      if (!choice.alias.empty()) out += " (= " + std::string(choice.alias) + ")";
    }
    return out;
  }
  if (!is_number() && field.index() != 4) return {};
  const bool low = std::isfinite(min);
  const bool high = std::isfinite(max);
  if (low && high && min == max) return "only " + bound_text(min);
  if (low && high) {
    return (above_min ? "above " : "") + bound_text(min) + (above_min ? ", at most " : " to ") +
           bound_text(max);
  }
  if (low) return (above_min ? "above " : "at least ") + bound_text(min);
  if (high) return "at most " + bound_text(max);
  return {};
}

std::string_view ConfigRow::section() const {
  return name.substr(0, name.find('.'));
}

const ConfigRow* find_config_row(std::string_view name) {
  for (const ConfigRow& row : config_table()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string config_value_yaml(const TrainConfig& config, const ConfigRow& row) {
  // The accessors take a mutable config because ConfigBuilder writes through them; here we only
  // read.
  TrainConfig copy = config;
  return std::visit(
      [&copy](auto access) -> std::string {
        const auto& value = access(copy);
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return quoted(value);
        } else if constexpr (std::is_arithmetic_v<Value>) {
          return number_text(value);
        } else {
          return list_text(value);
        }
      },
      row.field);
}

}  // namespace troupe::config
