// The words that mean yes and no, in files and on every command line. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace troupe::core {

// true, yes, on, 1 and false, no, off, 0, also with a capital; nothing for another word.
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
