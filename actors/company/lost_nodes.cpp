#include "actors/company/lost_nodes.hpp"

#include "runtime/core/shortage.hpp"

#include <algorithm>

namespace troupe::actors::company {

std::string lost_text(const std::string& name, const core::Error& cause) {
  const std::string head = name + " is lost: ";
  return cause.message.starts_with(head) ? cause.message : head + cause.message;
}

core::Error worn_out(core::ErrorCode last, core::ErrorCode otherwise, const std::string& text) {
  const bool no_room = last == core::ErrorCode::kResources || last == core::ErrorCode::kNoRoom;
  if (no_room) return core::advised(core::ErrorCode::kResources, text, core::kSmallerRoles);
  return {otherwise, text};
}

std::string last_words(const std::vector<std::string>& lines) {
  constexpr std::size_t kShown = 3, kBytes = 300;
  if (lines.empty()) return "";
  std::string text;
  for (std::size_t i = lines.size() - std::min(lines.size(), kShown); i < lines.size(); ++i)
    text += (text.empty() ? "" : " | ") + lines[i].substr(0, kBytes);
  return "; its last lines: " + text;
}

}  // namespace troupe::actors::company
