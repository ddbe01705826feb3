#include "runtime/dialects/tools/tool_format.hpp"

namespace troupe::dialects {

std::optional<ToolFormat> tool_format_of(std::string_view name) {
  for (const ToolFormatName& one : kToolFormats) {
    if (one.name == name) return one.format;
  }
  return std::nullopt;
}

bool marks_are_special(ToolFormat format) {
  return format == ToolFormat::kLlama3 || format == ToolFormat::kMistral;
}

ToolFormat tool_format_of_template(std::string_view source) {
  const auto has = [source](std::string_view part) { return source.find(part) != source.npos; };
  if (has("<tool_call>")) return ToolFormat::kHermes;
  if (has("[TOOL_CALLS]")) return ToolFormat::kMistral;
  if (has("<|python_tag|>")) return ToolFormat::kLlama3;
  return ToolFormat::kJson;
}

}  // namespace troupe::dialects
