#include "runtime/dialects/tools/tool_fields.hpp"

#include "runtime/dialects/json_text.hpp"

namespace troupe::dialects {

namespace {

bool is_text(const json& object, const char* key) {
  if (!object.is_object()) return false;
  const auto found = object.find(key);
  return found != object.end() && found->is_string() &&
         !found->get_ref<const std::string&>().empty();
}

// Checks one tool of the list.
bool read_tool(JsonFields& fields, const std::string& where, const json& tool, Dialogue& out) {
  if (!tool.is_object() || tool.value("type", json()) != json("function") ||
      !tool.contains("function") || !tool["function"].is_object()) {
    fields.complain(where, "must be an object with \"type\": \"function\" and a function");
    return false;
  }
  const json& function = tool["function"];
  if (!add_tool_name(fields, where + ".function.name", function, out)) return false;
  if (function.contains("parameters") && !function["parameters"].is_object()) {
    fields.complain(where + ".function.parameters", "must be an object");
    return false;
  }
  return true;
}

ToolChoice read_choice(JsonFields& fields) {
  const json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == json("auto")) return {};
  if (*choice == json("none")) return {ToolChoice::Kind::kNone};
  if (*choice == json("required")) return {ToolChoice::Kind::kRequired};
  if (choice->is_object() && choice->contains("function") && is_text((*choice)["function"], "name"))
    return {ToolChoice::Kind::kNamed, (*choice)["function"]["name"].get<std::string>()};
  fields.complain("tool_choice",
                  "must be \"auto\", \"none\", \"required\" or the object of a function's name");
  return {};
}

}  // namespace

bool add_tool_name(JsonFields& fields,
                   const std::string& where,
                   const json& holder,
                   Dialogue& out) {
  if (!is_text(holder, "name")) {
    fields.complain(where, "must be a text that is not empty");
    return false;
  }
  const std::string& name = holder["name"].get_ref<const std::string&>();
  if (out.tool_names.insert(name).second) return true;
  fields.complain("tools", "has two tools of the name '" + name + "'");
  return false;
}

void take_tools(JsonFields& fields,
                const std::string& field,
                const ToolChoice& choice,
                const json& tools,
                Dialogue& out) {
  out.tools = choice.kind != ToolChoice::Kind::kNone && !tools.empty();
  if (out.tools) out.tools_json = json_text(tools);
  if (choice.kind != ToolChoice::Kind::kRequired && choice.kind != ToolChoice::Kind::kNamed) return;
  out.must_call = true;
  out.called_tool = choice.name;
  if (!out.tools) return fields.complain(field, "goes with tools to call");
  if (!choice.name.empty() && !out.tool_names.contains(choice.name))
    return fields.complain(field, "names no tool of 'tools'");
  if (out.grammar)
    fields.complain(field, "that forces a call does not go with '" + out.grammar_field + "'");
}

void read_tools(JsonFields& fields, Dialogue& out) {
  const json* const tools = fields.find("tools");
  if (tools != nullptr && !tools->is_array()) return fields.complain("tools", "must be a list");
  out.one_call = !fields.boolean("parallel_tool_calls", true);
  const json list = tools == nullptr ? json::array() : *tools;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!read_tool(fields, "tools[" + std::to_string(i) + "]", list[i], out)) return;
  }
  take_tools(fields, "tool_choice", read_choice(fields), list, out);
}

}  // namespace troupe::dialects
