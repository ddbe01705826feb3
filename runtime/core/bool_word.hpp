// Parses the words for true and false in files and on command lines. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace troupe::core {

// Accepts true, yes, on, 1 and false, no, off, 0, also capitalised; nullopt for any other word.
inline std::optional<bool> bool_word(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on", "1", "True", "Yes", "On"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "0", "False", "No", "Off"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

}  // namespace troupe::core
