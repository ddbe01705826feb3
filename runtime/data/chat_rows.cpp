#include "runtime/data/chat_rows.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/text/messages.hpp"

#include <algorithm>
#include <utility>

namespace troupe::data {
namespace {

using text::ChatMessage;

constexpr std::string_view kCall = "function_call";

bool has_texts(const Json& item, const char* first, const char* second) {
  if (!item.is_object()) return false;
  const auto a = item.find(first), b = item.find(second);
  return a != item.end() && b != item.end() && a->is_string() && b->is_string();
}

// The chat template's role for a ShareGPT speaker; empty for an unknown one.
std::string role_of_speaker(std::string_view from) {
  if (from == "human" || from == "user") return "user";
  if (from == "gpt" || from == "assistant" || from == kCall) return "assistant";
  if (from == "system") return "system";
  if (from == "tool" || from == "observation") return "tool";
  return {};
}

// The calls of a turn from function_call, whose value is one {"name", "arguments"} or a list.
Result<Json> calls_of(const std::string& value) {
  const auto parsed = parse::bounded_json<Json>(value, {.numbers = parse::Numbers::kWholeIntegers});
  const auto wrong = [] {
    return bad_row("is from 'function_call' and must hold {\"name\", \"arguments\"}, or a list");
  };
  if (!parsed) return wrong();
  const Json list = parsed->is_array() ? *parsed : Json::array({*parsed});
  Json calls = Json::array();
  for (const Json& call : list) {
    if (!call.is_object() || !call.contains("name")) return wrong();
    calls.push_back({{"type", "function"}, {"function", call}});
  }
  return calls;
}

// A ShareGPT turn as a message; its other names stay.
Result<Json> message_of_turn(const Json& turn) {
  const auto& from = turn["from"].get_ref<const std::string&>();
  const std::string role = role_of_speaker(from);
  if (role.empty()) {
    return bad_row("is from '" + from + "'",
                   "read are human or user, gpt or assistant, system, tool or observation, and "
                   "function_call");
  }
  Json message = {{"role", role}, {"content", turn["value"]}};
  if (from == kCall) {
    message["content"] = "";
    TROUPE_TRY_SET(message["tool_calls"], calls_of(turn["value"].get<std::string>()));
  }
  for (const auto& [name, value] : turn.items()) {
    if (name != "from" && name != "value" && !message.contains(name)) message[name] = value;
  }
  return message;
}

Result<ChatMessage> read_turn(const Json& item) {
  const bool sharegpt = has_texts(item, "from", "value") && !item.contains("role");
  if (!sharegpt) return text::message_of(item);
  TROUPE_TRY_ASSIGN(message, message_of_turn(item));
  return text::message_of(message);
}

// The column, unless the row lacks it or it is null.
const Json* filled(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() || found->is_null() ? nullptr : &*found;
}

core::Failure in_column(const char* key, const core::Error& error) {
  return bad_row("column '" + std::string(key) + "' " + error.message);
}

// LLaMA-Factory lists functions without the object around them, which templates read.
std::string in_objects(const std::string& tools) {
  Json list = Json::array();
  const auto given = parse::bounded_json<Json>(tools, {.numbers = parse::Numbers::kWholeIntegers});
  if (!given) return tools;
  for (const Json& tool : *given) {
    const bool bare = tool.contains("name") && !tool.contains("function");
    list.push_back(bare ? Json{{"type", "function"}, {"function", tool}} : tool);
  }
  return parse::written_text(list);
}

// The column if it is a text that begins as a JSON list does.
const std::string* listed_text(const Json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_string()) return nullptr;
  const auto& text = found->get_ref<const std::string&>();
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '[') return nullptr;
  const auto second = text.find_first_not_of(" \t\r\n", first + 1);
  return second != text.npos && text[second] == '{' ? &text : nullptr;
}

bool is_listed_message(const Json& item) {
  if (has_texts(item, "from", "value")) return true;
  if (!item.is_object()) return false;
  const auto role = item.find("role");
  return role != item.end() && role->is_string() &&
         (item.contains("content") || item.contains("tool_calls"));
}

// The messages in a text; null: it holds none.
Json listed_messages(const std::string& text, parse::Numbers numbers) {
  auto list = parse::bounded_json<Json>(text, {.numbers = numbers});
  const bool messages = list && list->is_array() && !list->empty() &&
                        std::all_of(list->begin(), list->end(), is_listed_message);
  return messages ? std::move(*list) : Json();
}

core::Failure unlisted(const std::string& key) {
  return bad_row("column '" + key + "' is a text that begins as a list of messages and is no JSON",
                 "Python's own way of writing a list is mended by: python3 -c 'import ast, json, "
                 "sys; [print(json.dumps({**r, \"" +
                     key + "\": ast.literal_eval(r[\"" + key +
                     "\"])})) for r in map(json.loads, sys.stdin)]' < ROWS.jsonl > MENDED.jsonl; "
                     "`troupe data convert` makes ROWS.jsonl of files of another kind");
}

}  // namespace

Result<std::optional<Json>> with_listed_messages(const Json& row,
                                                 const MessageColumns& columns,
                                                 parse::Numbers numbers) {
  std::optional<Json> out;
  const auto put = [&](const std::string& key, Json list) {
    if (!out) out = row;
    (*out)[key] = std::move(list);
  };
  // Where another column may be the prompt, nobody need read a list that is no JSON.
  const bool other = std::ranges::any_of(columns.prompts, [&row](const std::string& key) {
    return key != "messages" && key != "conversations" && row.contains(key);
  });
  bool listed = false;
  for (const std::string& key : columns.prompts) {
    const auto there = row.find(key);
    listed = listed || (there != row.end() && there->is_array());
    const std::string* const text = listed_text(row, key);
    if (text == nullptr) continue;
    Json list = listed_messages(*text, numbers);
    if (!list.is_null()) {
      listed = true;
      put(key, std::move(list));
    } else if (!other && (key == "messages" || key == "conversations")) {
      return unlisted(key);
    }
  }
  std::vector<std::pair<std::string, Json>> answers;
  bool whole = true;
  for (const std::string& key : columns.answers) {
    const std::string* const text = listed_text(row, key);
    if (text == nullptr) continue;
    Json list = listed_messages(*text, numbers);
    if (list.is_null()) continue;
    whole = whole && list.size() > 1;
    answers.emplace_back(key, std::move(list));
  }
  if (!listed && !(whole && answers.size() > 1)) return out;
  for (auto& [key, list] : answers)
    put(key, std::move(list));
  return out;
}

Result<std::vector<ChatMessage>> messages_in(const Json& list, const std::string& key) {
  std::vector<ChatMessage> out;
  for (const Json& item : list) {
    auto message = read_turn(item);
    if (!message) {
      const std::string why(message.error().what());
      const bool is_message = item.is_object() && (item.contains("role") || item.contains("value"));
      return bad_row("column '" + key + "', turn " + std::to_string(out.size() + 1) +
                         (why.starts_with(".") ? why : " " + why),
                     is_message
                         ? message.error().advice()
                         : "a message is {\"role\": ..., \"content\": ...}, or {\"from\": ..., "
                           "\"value\": ...} as ShareGPT has it");
    }
    out.push_back(std::move(*message));
  }
  if (out.empty()) return bad_row("column '" + key + "': the list of messages is empty");
  return out;
}

Result<text::ChatInputs> chat_inputs(const Json& row, bool bare_tools) {
  text::ChatInputs out;
  if (const Json* tools = filled(row, kToolsColumn)) {
    auto read = text::tools_of(*tools);
    if (!read) return in_column(kToolsColumn, read.error());
    out.tools_json = bare_tools ? in_objects(*read) : std::move(*read);
  }
  if (const Json* variables = filled(row, kVariablesColumn)) {
    auto read = text::variables_of(*variables);
    if (!read) return in_column(kVariablesColumn, read.error());
    out.variables_json = std::move(*read);
  }
  return out;
}

Result<void> refuse_chat_inputs(const Json& row, const std::string& what) {
  const auto inputs = chat_inputs(row);
  if (!inputs || !inputs->any()) return {};  // a column of that name with something else in it
  const std::string key = inputs->tools_json.empty() ? kVariablesColumn : kToolsColumn;
  return bad_row(
      "column '" + key + "' is for the chat template, and " + what + " does not go through it",
      "give a list of messages (or --data.apply_chat_template true), or call the column "
      "something else");
}

std::optional<std::string> text_of_column(const Json& value,
                                          const text::ChatTemplate* chat,
                                          const text::RenderOptions& options) {
  if (value.is_string()) return value.get<std::string>();
  if (chat == nullptr || !value.is_array() || value.empty() || !value[0].is_object())
    return std::nullopt;
  const auto messages = messages_in(value, "");
  if (!messages) return std::nullopt;  // a list of something else
  auto rendered = chat->render(*messages, options);
  if (!rendered) return std::nullopt;
  return std::move(*rendered);
}

}  // namespace troupe::data
