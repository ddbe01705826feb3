#include "runtime/data/default_columns.hpp"

#include <algorithm>
#include <span>

namespace troupe::data {
namespace {

std::string first_of(std::span<const std::string_view> list,
                     const Json& row,
                     const std::string& named) {
  if (row.contains(named) || std::ranges::find(list, named) == list.end()) return named;
  const auto found =
      std::ranges::find_if(list, [&](std::string_view name) { return row.contains(name); });
  return found == list.end() ? named : std::string(*found);
}

}  // namespace

bool is_default_prompt(std::string_view named) {
  return named.empty() || std::ranges::find(kPromptColumns, named) != std::end(kPromptColumns);
}

std::string prompt_column(const Json& row, const std::string& named) {
  const auto messages = row.find("messages");
  const bool listed = messages != row.end() && messages->is_array();
  if (listed && !row.contains(named) && is_default_prompt(named)) return "messages";
  return first_of(kPromptColumns, row, named);
}

std::string answer_column(const Json& row, const std::string& named, bool beside_messages) {
  const std::string found = first_of(kAnswerColumns, row, named);
  return beside_messages && found != "completion" ? named : found;
}

std::string text_column(const Json& row, const std::string& named) {
  return first_of(kTextColumns, row, named);
}

}  // namespace troupe::data
