// The names that users give to nodes, rewards and environments of a run. They end up in files, logs
// and terminals, so they hold safe characters alone. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace troupe::core {

inline constexpr std::size_t kPlainName_bytes_max = 128;
inline constexpr const char* kPlainNameRule =
    "has 1 to 128 letters, digits, '-', '_' and '.', and is neither '.' nor '..'";

constexpr bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

inline bool is_plain_name(std::string_view name, std::size_t bytes_max = kPlainName_bytes_max) {
  return !name.empty() && name.size() <= bytes_max && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), is_plain_character);
}

}  // namespace troupe::core
