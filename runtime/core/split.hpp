// Splits a text at a separator. Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

namespace troupe::core {

// The pieces of `text` between separators, as views into it. There is one more piece than
// separators, so an empty text gives one empty piece.
inline std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const auto end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == text.npos) return pieces;
    text.remove_prefix(end + separator.size());
  }
}

}  // namespace troupe::core
