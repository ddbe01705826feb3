#include "runtime/text/unseen_tools.hpp"

#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <set>

namespace troupe::text {
namespace {

using nlohmann::ordered_json;

// Of {"function": {"name"}} and of the bare {"name"}.
std::set<std::string> names_of(std::string_view tools_json) {
  std::set<std::string> names;
  const ordered_json list = parse::written_json<ordered_json>(tools_json);
  if (!list.is_array()) return names;
  for (const ordered_json& tool : list) {
    if (!tool.is_object()) continue;
    const auto function = tool.find("function");
    const ordered_json& named = function != tool.end() && function->is_object() ? *function : tool;
    const auto name = named.find("name");
    if (name != named.end() && name->is_string()) names.insert(name->get<std::string>());
  }
  return names;
}

}  // namespace

std::string unseen_tools(std::string_view without,
                         std::string_view with,
                         std::string_view tools_json) {
  if (without != with) return {};
  std::string all;
  bool named = true;
  for (const std::string& name : names_of(tools_json)) {
    named = named && with.find(name) != with.npos;
    all += (all.empty() ? "" : ", ") + name;
  }
  return named ? std::string() : all;
}

std::string unseen_tools(const ChatTemplate& chat,
                         std::span<const ChatMessage> messages,
                         const ChatInputs& inputs) {
  RenderOptions options = RenderOptions::with(inputs, true);
  const auto with = chat.render(messages, options);
  options.tools_json.clear();
  const auto without = chat.render(messages, options);
  if (!with || !without) return {};
  return unseen_tools(*without, *with, inputs.tools_json);
}

}  // namespace troupe::text
