#include "runtime/core/shell_word.hpp"

namespace troupe::core {

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == word.npos;
  if (plain) return std::string(word);
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace troupe::core
