// Reads the bodies of Anthropic's Messages.
#include "runtime/dialects/json_fields.hpp"
#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/readers.hpp"
#include "runtime/dialects/request_fields.hpp"
#include "runtime/dialects/sampling_fields.hpp"
#include "runtime/dialects/tools/tool_fields.hpp"

#include <string_view>
#include <utility>

namespace troupe::dialects {

namespace {

bool has_text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string();
}

std::string at(const std::string& list, std::size_t i) {
  return list + "[" + std::to_string(i) + "]";
}

// The type of a block; empty if it is no object with a type.
std::string_view type_of(const json& block) {
  if (!block.is_object() || !has_text(block, "type")) return {};
  return block["type"].get_ref<const std::string&>();
}

// A content that may hold only texts, joined; a string stands for one text.
std::string read_texts(JsonFields& fields, const std::string& where, const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string joined;
  if (!content.is_array()) {
    fields.complain(where, "must be a text or a list of blocks");
    return joined;
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    const json& block = content[i];
    if (type_of(block) == "text" && has_text(block, "text")) {
      joined += block["text"].get_ref<const std::string&>();
      continue;
    }
    fields.complain(at(where, i), "must be a block of type text, with a text");
    return joined;
  }
  return joined;
}

// Reads the messages one by one, and writes those of the chat form.
class DialogueReader {
 public:
  explicit DialogueReader(JsonFields& fields) : fields_(fields) {}

  // Joins the leading system text, wherever in the dialogue it was said: templates have one place
  // for it.
  void system(const std::string& where, const json& content) {
    std::string text = read_texts(fields_, where, content);
    if (out_.empty() || out_[0]["role"] != "system") {
      json made = {{"role", "system"}, {"content", std::move(text)}};
      out_.insert(out_.begin(), std::move(made));
      return;
    }
    auto& before = out_[0]["content"].get_ref<std::string&>();
    before += (before.empty() || text.empty() ? "" : "\n\n") + text;
  }
  void messages(const json& messages);
  std::string text() const { return json_text(out_); }

 private:
  void message(const std::string& where, const json& message);
  void of_assistant(const std::string& where, const json& blocks);
  void of_user(const std::string& where, const json& blocks);
  json call(const std::string& where, const json& block);
  json result(const std::string& where, const json& block);

  JsonFields& fields_;
  json out_ = json::array();
};

void DialogueReader::messages(const json& messages) {
  if (!messages.is_array() || messages.empty())
    return fields_.complain("messages", "must be a list of at least one message");
  for (std::size_t i = 0; i < messages.size() && !fields_.error(); ++i)
    message(at("messages", i), messages[i]);
  if (!fields_.error() && messages.back()["role"] == "assistant") {
    fields_.complain(at("messages", messages.size() - 1) + ".role",
                     "is assistant: this server goes on with no answer that was begun");
  }
}

void DialogueReader::message(const std::string& where, const json& message) {
  if (!message.is_object() || !has_text(message, "role"))
    return fields_.complain(where, "must be an object with a role");
  const std::string& role = message["role"].get_ref<const std::string&>();
  if (role != "user" && role != "assistant" && role != "system")
    return fields_.complain(where + ".role", "is none of user, assistant and system");
  const std::string inside = where + ".content";
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return fields_.complain(inside, "is missing");
  if (role == "system") return system(inside, *content);
  if (content->is_string()) {
    std::string text = read_texts(fields_, inside, *content);
    out_.push_back({{"role", role}, {"content", std::move(text)}});
    return;
  }
  if (!content->is_array() || content->empty())
    return fields_.complain(inside, "must be a text or a list of at least one block");
  if (role == "user") return of_user(inside, *content);
  of_assistant(inside, *content);
}

void DialogueReader::of_assistant(const std::string& where, const json& blocks) {
  std::string text;
  json calls = json::array();
  for (std::size_t i = 0; i < blocks.size() && !fields_.error(); ++i) {
    const std::string_view type = type_of(blocks[i]);
    if (type == "text" && has_text(blocks[i], "text")) {
      text += blocks[i]["text"].get_ref<const std::string&>();
    } else if (type == "tool_use") {
      calls.push_back(call(at(where, i), blocks[i]));
    } else {
      fields_.complain(at(where, i), "must be a block of type text or tool_use");
    }
  }
  json made = {{"role", "assistant"}, {"content", std::move(text)}};
  if (!calls.empty()) made["tool_calls"] = std::move(calls);
  out_.push_back(std::move(made));
}

json DialogueReader::call(const std::string& where, const json& block) {
  if (!has_text(block, "id")) fields_.complain(where + ".id", "must be a text");
  const bool named =
      has_text(block, "name") && !block["name"].get_ref<const std::string&>().empty();
  if (!named) fields_.complain(where + ".name", "must be a text that is not empty");
  const auto input = block.find("input");
  if (input == block.end() || !input->is_object())
    fields_.complain(where + ".input", "must be an object");
  if (fields_.error()) return {};
  return {{"id", block["id"]},
          {"type", "function"},
          {"function", {{"name", block["name"]}, {"arguments", *input}}}};
}

// Results of tools are messages of their own; the texts between them are the user's.
void DialogueReader::of_user(const std::string& where, const json& blocks) {
  std::optional<std::string> text;
  const auto say = [this, &text] {
    if (text) out_.push_back({{"role", "user"}, {"content", std::move(*text)}});
    text.reset();
  };
  for (std::size_t i = 0; i < blocks.size() && !fields_.error(); ++i) {
    const std::string_view type = type_of(blocks[i]);
    if (type == "text" && has_text(blocks[i], "text")) {
      text = text.value_or("") + blocks[i]["text"].get_ref<const std::string&>();
    } else if (type == "tool_result") {
      say();
      out_.push_back(result(at(where, i), blocks[i]));
    } else {
      fields_.complain(at(where, i), "must be a block of type text or tool_result");
    }
  }
  say();
}

json DialogueReader::result(const std::string& where, const json& block) {
  if (!has_text(block, "tool_use_id")) fields_.complain(where + ".tool_use_id", "must be a text");
  if (fields_.error()) return {};
  const auto content = block.find("content");
  const bool none = content == block.end() || content->is_null();
  std::string text = none ? std::string() : read_texts(fields_, where + ".content", *content);
  return {{"role", "tool"}, {"tool_call_id", block["tool_use_id"]}, {"content", std::move(text)}};
}

ToolChoice read_tool_choice(JsonFields& fields, Dialogue& out) {
  const json* const choice = fields.find("tool_choice");
  if (choice == nullptr) return {};
  if (!choice->is_object()) {
    fields.complain("tool_choice", "must be an object with a type");
    return {};
  }
  JsonFields inner(*choice, "tool_choice.");
  const std::string type = inner.text("type");
  const std::string name = inner.text("name");
  out.one_call = inner.boolean("disable_parallel_tool_use", false);
  if (type != "auto" && type != "none" && type != "any" && type != "tool")
    inner.complain("type", "must be auto, none, any or tool");
  if (type == "tool" && name.empty()) inner.complain("name", "is missing");
  inner.end();
  fields.take_over(inner);
  if (type == "none") return {ToolChoice::Kind::kNone};
  if (type == "any") return {ToolChoice::Kind::kRequired};
  if (type == "tool") return {ToolChoice::Kind::kNamed, name};
  return {};
}

// One tool in OpenAI's form, which templates read; null after an error.
json read_tool_of(JsonFields& fields, const std::string& where, const json& tool, Dialogue& out) {
  if (!tool.is_object()) {
    fields.complain(where, "must be an object");
    return {};
  }
  JsonFields inner(tool, where + ".");
  const std::string type = inner.text("type");
  if (!type.empty() && type != "custom") {
    inner.complain("type", "is '" + type.substr(0, 64) +
                               "': this server runs no tools; \"custom\" ones are the client's");
  }
  static_cast<void>(inner.find("name"));
  const std::string description = inner.text("description");
  const json* const schema = inner.find("input_schema");
  if (schema == nullptr || !schema->is_object())
    inner.complain("input_schema", "must be an object");
  if (inner.boolean("defer_loading", false))
    inner.complain("defer_loading", "is not supported by this server");
  inner.ignore(
      {"cache_control", "strict", "eager_input_streaming", "input_examples", "allowed_callers"});
  inner.end();
  fields.take_over(inner);
  if (fields.error() || !add_tool_name(fields, where + ".name", tool, out)) return {};
  json function = {{"name", tool["name"]}};
  if (!description.empty()) function["description"] = description;
  function["parameters"] = *schema;
  return {{"type", "function"}, {"function", std::move(function)}};
}

void read_tools_of(JsonFields& fields, Dialogue& out) {
  const json* const tools = fields.find("tools");
  if (tools != nullptr && !tools->is_array()) return fields.complain("tools", "must be a list");
  json list = json::array();
  for (std::size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    list.push_back(read_tool_of(fields, at("tools", i), (*tools)[i], out));
    if (fields.error()) return;
  }
  take_tools(fields, "tool_choice", read_tool_choice(fields, out), list, out);
}

void read_thinking(JsonFields& fields) {
  const json* const thinking = fields.find("thinking");
  if (thinking == nullptr) return;
  if (type_of(*thinking) != "disabled")
    fields.complain("thinking", "is not supported other than {\"type\": \"disabled\"}");
}

// What both paths read: the dialogue, its tools, and fields without effect here.
void read_dialogue(JsonFields& fields, Dialogue& out) {
  DialogueReader reader(fields);
  if (const json* system = fields.find("system")) reader.system("system", *system);
  if (const json* messages = fields.find("messages")) {
    reader.messages(*messages);
  } else {
    fields.complain("messages", "is missing");
  }
  out.messages_json = reader.text();
  read_tools_of(fields, out);
  read_template(fields, out);
  read_thinking(fields);
  fields.unsupported({"container", "mcp_servers", "context_management", "output_config",
                      "output_format", "speed", "diagnostics"});
  fields.ignore({"metadata", "cache_control", "service_tier", "inference_geo", "user_profile_id",
                 "workspace_id", "betas"});
}

}  // namespace

Read read_messages_request(const std::string& body, const ServeBounds& bounds) {
  return read_body<GenerateRequest>(body, bounds, [&](JsonFields& fields, GenerateRequest& out) {
    out.dialect = Dialect::kMessages;
    if (fields.find("max_tokens") == nullptr) fields.complain("max_tokens", "is missing");
    out.max_tokens = fields.integer("max_tokens", 1, 1, INT32_MAX);
    read_dialogue(fields, out);
    read_sampling(fields, bounds, out, "stop_sequences");
    if (out.n != 1) fields.complain("n", "is not supported: a message is one sample");
    read_cache(fields, out);
    read_ids(fields, bounds, out);
    read_dialogue_logprobs(fields, bounds, out);
    out.stream = fields.boolean("stream", false);
  });
}

std::variant<TokenizeRequest, ApiError> read_count_tokens(const std::string& body,
                                                          const ServeBounds& bounds) {
  return read_body<TokenizeRequest>(
      body, bounds, [](JsonFields& fields, TokenizeRequest& out) { read_dialogue(fields, out); });
}

}  // namespace troupe::dialects
