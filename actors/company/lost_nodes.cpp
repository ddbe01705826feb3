#include "actors/company/lost_nodes.hpp"

#include <algorithm>

namespace troupe::actors {

std::string last_words(const std::vector<std::string>& lines) {
  constexpr std::size_t kShown = 3, kBytes = 300;
  if (lines.empty()) return "";
  std::string text;
  for (std::size_t i = lines.size() - std::min(lines.size(), kShown); i < lines.size(); ++i)
    text += (text.empty() ? "" : " | ") + lines[i].substr(0, kBytes);
  return "; its last lines: " + text;
}

}  // namespace troupe::actors
