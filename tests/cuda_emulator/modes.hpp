// How an emulator is told to misbehave: words with commas between in an environment variable, each
// alone ("guard") or with a number ("fail:3"). Plain functions, for every emulated library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace troupe_emulator {

// Calls `found` with each word of the variable until it returns true.
template <class Found>
bool any_mode(const char* variable, Found found) {
  const char* const text = std::getenv(variable);
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (found(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

inline bool mode_has(const char* variable, std::string_view word) {
  return any_mode(variable, [word](std::string_view one) { return one == word; });
}

inline std::optional<std::uint64_t> mode_number(const char* variable, std::string_view word) {
  std::optional<std::uint64_t> number;
  any_mode(variable, [&](std::string_view one) {
    if (!one.starts_with(word) || one.substr(word.size(), 1) != ":") return false;
    number = std::strtoull(std::string(one.substr(word.size() + 1)).c_str(), nullptr, 10);
    return true;
  });
  return number;
}

}  // namespace troupe_emulator
