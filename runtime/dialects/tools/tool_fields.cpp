#include "runtime/dialects/tools/tool_fields.hpp"

#include "runtime/dialects/tools/tool_arguments.hpp"

#include <nlohmann/json.hpp>

#include <string_view>
#include <utility>

namespace troupe::dialects {

using json = nlohmann::ordered_json;

namespace {

bool is_text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() &&
         !found->get_ref<const std::string&>().empty();
}

// The name of a tool of the list; empty after an error.
std::string tool_name(JsonFields& fields, const std::string& where, const json& tool) {
  if (!tool.is_object() || tool.value("type", json()) != json("function") ||
      !tool.contains("function") || !tool["function"].is_object()) {
    fields.complain(where, "must be an object with \"type\": \"function\" and a function");
    return {};
  }
  const json& function = tool["function"];
  if (!is_text(function, "name")) {
    fields.complain(where + ".function.name", "must be a text that is not empty");
    return {};
  }
  if (function.contains("parameters") && !function["parameters"].is_object()) {
    fields.complain(where + ".function.parameters", "must be an object");
    return {};
  }
  return function["name"].get<std::string>();
}

// Whether the model may call tools.
bool read_choice(JsonFields& fields, bool has_tools) {
  const json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == json("auto")) return has_tools;
  if (*choice == json("none")) return false;
  if (*choice == json("required") || choice->is_object()) {
    fields.complain(
        "tool_choice",
        "is not supported other than \"auto\" and \"none\": this server forces no call");
  } else {
    fields.complain("tool_choice", "must be \"auto\" or \"none\"");
  }
  return false;
}

}  // namespace

void read_tools(JsonFields& fields, GenerateRequest& out) {
  const json* const tools = fields.find("tools");
  if (tools != nullptr && !tools->is_array()) fields.complain("tools", "must be a list");
  const bool some = tools != nullptr && tools->is_array() && !tools->empty();
  out.one_call = !fields.boolean("parallel_tool_calls", true);
  out.tools = read_choice(fields, some);
  if (!some) return;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const std::string name = tool_name(fields, "tools[" + std::to_string(i) + "]", (*tools)[i]);
    if (name.empty()) return;
    if (!out.tool_names.insert(name).second) {
      return fields.complain("tools", "has two tools of the name '" + name + "'");
    }
  }
  if (out.tools) out.tools_json = tools->dump(-1, ' ', false, json::error_handler_t::replace);
}

void read_calls(JsonFields& fields, const std::string& where, json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null()) return;
  if (!calls->is_array()) return fields.complain(where + ".tool_calls", "must be a list");
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const std::string name = where + ".tool_calls[" + std::to_string(i) + "]";
    json& call = (*calls)[i];
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object() ||
        !is_text(call["function"], "name")) {
      return fields.complain(name, "must be an object with a function that has a name");
    }
    json& arguments = call["function"]["arguments"];
    if (arguments.is_null()) arguments = json::object();
    auto inner = arguments_of(arguments);
    if (!inner) {
      return fields.complain(name + ".function.arguments", "must be the text of a JSON object");
    }
    arguments = std::move(*inner);
  }
}

}  // namespace troupe::dialects
