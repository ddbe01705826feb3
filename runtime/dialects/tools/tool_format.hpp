// How a model writes a call of a tool into its text. Values and pure functions; any thread.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace troupe::dialects {

enum class ToolFormat {
  kHermes,   // <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Hermes, Qwen
  kLlama3,   // {"name": ..., "parameters": {...}}, perhaps behind <|python_tag|>
  kMistral,  // [TOOL_CALLS][{"name": ..., "arguments": {...}}], or [TOOL_CALLS]NAME[ARGS]{...}
  kJson,  // {"name": ..., "arguments": {...}} at the beginning of a line, of a tool that there is
};

// The values of --tool-call-parser: vLLM's names, and `json`.
struct ToolFormatName {
  ToolFormat format;
  std::string_view name;
};
inline constexpr std::array kToolFormats = {
    ToolFormatName{ToolFormat::kHermes, "hermes"},
    ToolFormatName{ToolFormat::kLlama3, "llama3_json"},
    ToolFormatName{ToolFormat::kMistral, "mistral"},
    ToolFormatName{ToolFormat::kJson, "json"},
};

inline constexpr const char* kToolFormat_names = "hermes, llama3_json, mistral or json";

std::optional<ToolFormat> tool_format_of(std::string_view name);

// Whether the marks around calls are special tokens, which texts leave out.
bool marks_are_special(ToolFormat format);

// What a chat template's source shows of the format in which it writes calls; kJson if nothing.
ToolFormat tool_format_of_template(std::string_view source);

}  // namespace troupe::dialects
