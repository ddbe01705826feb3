#include "runtime/dialects/tools/forced_call.hpp"

#include "runtime/dialects/json_text.hpp"
#include "runtime/guide/schema_check.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace troupe::dialects {
namespace {

using Schema = nlohmann::ordered_json;

// The special token of this text in a grammar; none if there is no such token.
std::optional<std::string> special_token(const text::Tokenizer& tokenizer, std::string_view text) {
  const auto id = tokenizer.single(text);
  if (!id || !tokenizer.is_special(*id)) return std::nullopt;
  return "<[" + std::to_string(*id) + "]>";
}

// How calls are written: what surrounds the response, one call and what stands between two.
struct Writing {
  std::string open, close;            // of the response, as symbols of a grammar
  std::string call_open, call_close;  // texts of a call
  std::string_view arguments;         // the name of the member with the arguments
  std::string_view between;           // two calls
};

Writing writing_of(ToolFormat format, const text::Tokenizer& tokenizer) {
  switch (format) {
    case ToolFormat::kHermes:
      return {"", "", "<tool_call>\n", "\n</tool_call>", "arguments", "\n"};
    case ToolFormat::kLlama3:
      return {"", "", "", "", "parameters", "; "};
    case ToolFormat::kMistral: {
      const std::string mark =
          special_token(tokenizer, "[TOOL_CALLS]").value_or(json_text("[TOOL_CALLS]"));
      return {mark + " \"[\" ", " \"]\"", "", "", "arguments", ", "};
    }
    case ToolFormat::kJson:
      break;
  }
  return {"", "", "", "", "arguments", "\n"};
}

// The schema of a tool's arguments, which are an object; an error where they are not.
std::variant<Schema, ApiError> arguments_schema(const Schema& function, std::size_t index) {
  Schema schema = function.value("parameters", Schema::object());
  if (!schema.contains("type") && !schema.contains("$ref")) schema["type"] = "object";
  if (schema.contains("type") && schema["type"] != "object") {
    return ApiError{.message = "the parameters of a tool are an object, and those of '" +
                               function.value("name", "") + "' are of the type " +
                               schema["type"].dump(),
                    .param = "tools[" + std::to_string(index) + "].function.parameters"};
  }
  if (!schema.contains("x-guidance")) schema["x-guidance"] = Schema::object();
  if (schema["x-guidance"].is_object() && !schema["x-guidance"].contains("whitespace_pattern"))
    schema["x-guidance"]["whitespace_pattern"] = guide::kJsonSpace;
  return schema;
}

}  // namespace

std::variant<guide::Grammar, ApiError> forced_call(const GenerateRequest& request,
                                                   ToolFormat format,
                                                   const text::Tokenizer& tokenizer) {
  const Schema tools = parse::written_json<Schema>(request.tools_json);
  const Writing writing = writing_of(format, tokenizer);
  // Newer templates of Mistral write NAME[ARGS]{...} behind a mark of each call.
  const auto args_mark =
      format == ToolFormat::kMistral ? special_token(tokenizer, "[ARGS]") : std::nullopt;
  const auto call_mark = special_token(tokenizer, "[TOOL_CALLS]");
  const bool named = args_mark && call_mark;
  std::string calls, arguments;
  for (std::size_t i = 0; tools.is_array() && i < tools.size(); ++i) {
    const Schema& function = tools[i]["function"];
    const std::string name = function.value("name", "");
    if (!request.called_tool.empty() && name != request.called_tool) continue;
    auto schema = arguments_schema(function, i);
    if (auto* bad = std::get_if<ApiError>(&schema)) return *bad;
    if (auto kept = guide::check_schema(json_text(std::get<Schema>(schema))); !kept) {
      return ApiError{.message = "the parameters of '" + name + "': " + kept.error().message,
                      .param = "tools[" + std::to_string(i) + "].function.parameters"};
    }
    const std::string rule = "args_" + std::to_string(i);
    std::string call;
    if (named) {
      call = *call_mark + " " + json_text(name) + " " + *args_mark + " " + rule;
    } else {
      call = json_text(writing.call_open + "{\"name\": " + json_text(name) + ", \"" +
                       std::string(writing.arguments) + "\": ") +
             " " + rule + " " + json_text("}" + writing.call_close);
    }
    calls += (calls.empty() ? "\ncall: " : "\n  | ") + call;
    arguments += "\n" + rule + ": %json " + json_text(std::get<Schema>(schema));
  }
  if (calls.empty()) return ApiError{.message = "there is no tool to call", .param = "tools"};
  std::string start = "call";
  if (!request.one_call) start += named ? " call*" : " (" + json_text(writing.between) + " call)*";
  if (!named) start = writing.open + start + writing.close;
  return guide::Grammar{guide::GrammarKind::kLark, "start: " + start + calls + arguments + "\n"};
}

}  // namespace troupe::dialects
