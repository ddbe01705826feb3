// Short texts: as printf writes them, lists with separators, and the number that a text is. Pure.
#pragma once

#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::core {

// What printf would print, up to 511 bytes of it.
[[gnu::format(printf, 1, 2)]] inline std::string printed(const char* form, ...) {
  char text[512];
  va_list values;
  va_start(values, form);
  std::vsnprintf(text, sizeof text, form, values);
  va_end(values);
  return text;
}

// The items of a list, with the separator between them.
template <class List>
std::string joined(const List& list, std::string_view separator = ", ") {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

// The number that is all of the text; nothing for another text.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace troupe::core
