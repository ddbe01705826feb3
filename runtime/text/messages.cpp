#include "runtime/text/messages.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace troupe::text {

using Json = nlohmann::ordered_json;

namespace {

// Names that a request or a row may not set, since the renderer sets them for the template.
constexpr std::array<std::string_view, 12> kReserved = {
    "messages",      "tools",     "add_generation_prompt",
    "chat_template", "documents", "bos_token",
    "eos_token",     "pad_token", "unk_token",
    "tokenize",      "now",       "strftime_now"};

constexpr std::array<const char*, 3> kReasoning = {"reasoning_content", "reasoning", "thinking"};

// The member, unless it is missing or null.
const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool is_text_at(const Json& object, const char* name) {
  const Json* found = object.is_object() ? member(object, name) : nullptr;
  return found != nullptr && found->is_string() && !found->get_ref<const std::string&>().empty();
}

bool calls_or_reasons(const Json& message) {
  const Json* calls = member(message, "tool_calls");
  if (calls != nullptr && calls->is_array() && !calls->empty()) return true;
  return std::any_of(kReasoning.begin(), kReasoning.end(),
                     [&](const char* name) { return is_text_at(message, name); });
}

std::optional<MessageFault> check_content(const Json& message) {
  const Json* content = member(message, "content");
  if (content == nullptr) {
    if (message["role"] == "assistant" && calls_or_reasons(message)) return std::nullopt;
    return MessageFault{".content", "is missing"};
  }
  if (content->is_string()) return std::nullopt;
  if (!content->is_array() || content->empty())
    return MessageFault{".content", "must be a string or a list of at least one part"};
  if (has_text_parts(message)) return std::nullopt;
  return MessageFault{".content", "may hold parts of type text alone"};
}

std::optional<MessageFault> check_calls(const Json& message) {
  const Json* calls = member(message, "tool_calls");
  if (calls == nullptr) return std::nullopt;
  if (!calls->is_array()) return MessageFault{".tool_calls", "must be a list"};
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const std::string name = ".tool_calls[" + std::to_string(i) + "]";
    const Json& call = (*calls)[i];
    const bool nested = call.is_object() && call.contains("function");
    const Json& function = nested ? call["function"] : call;
    if (!is_text_at(function, "name"))
      return MessageFault{name, "must be an object with a function that has a name"};
    const auto arguments = function.find("arguments");
    if (arguments == function.end() || arguments_of(*arguments)) continue;
    return MessageFault{name + (nested ? ".function" : "") + ".arguments",
                        "must be the text of a JSON object"};
  }
  return std::nullopt;
}

Result<Json> parsed(const std::string& text) {
  return parse::bounded_json<Json>(text,
                                   {.depth_max = static_cast<int>(parse::limits::kJsonDepth_max),
                                    .numbers = parse::Numbers::kWholeIntegers});
}

// A value, or the one that a text holds; null for an empty text.
Json held_by(const Json& given) {
  if (!given.is_string()) return given;
  const auto& text = given.get_ref<const std::string&>();
  if (text.find_first_not_of(" \t\r\n") == text.npos) return {};
  auto value = parsed(text);
  return value ? std::move(*value) : given;
}

core::Failure bad(std::string why) {
  return core::fail(ErrorCode::kData, std::move(why));
}

// Whether "weight" says that the message is learned: OpenAI's form, in which 0 means no.
Result<std::optional<bool>> weight_of(const Json& message) {
  const Json* weight = member(message, "weight");
  if (weight == nullptr) return std::optional<bool>();
  if (weight->is_boolean()) return std::optional<bool>(weight->get<bool>());
  const auto number = parse::number_in(*weight);
  if (number && (*number == 0 || *number == 1)) return std::optional(*number == 1);
  return bad(".weight must be 0 (not learned) or 1");
}

}  // namespace

std::optional<Json> arguments_of(const Json& given) {
  if (given.is_object()) return given;
  const Json held = held_by(given);
  if (held.is_null()) return Json::object();
  if (!held.is_object()) return std::nullopt;
  return held;
}

std::optional<MessageFault> check_message(const Json& message) {
  if (!message.is_object() || !is_text_at(message, "role"))
    return MessageFault{"", "must be an object with a role"};
  if (auto fault = check_content(message)) return fault;
  return check_calls(message);
}

bool has_text_parts(const Json& message) {
  const Json* content = member(message, "content");
  if (content == nullptr || !content->is_array() || content->empty()) return false;
  return std::all_of(content->begin(), content->end(), [](const Json& part) {
    return part.is_object() && part.value("type", Json()) == Json("text") &&
           part.contains("text") && part["text"].is_string();
  });
}

std::string text_of_content(const Json& message) {
  const Json* content = member(message, "content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  std::string joined;
  for (const Json& part : *content)
    joined += part["text"].get_ref<const std::string&>();
  return joined;
}

Result<ChatMessage> message_of(const Json& message) {
  if (const auto fault = check_message(message))
    return bad(fault->field + (fault->field.empty() ? "" : " ") + fault->why);
  TROUPE_TRY_ASSIGN(weight, weight_of(message));
  ChatMessage out{message["role"].get<std::string>(), text_of_content(message)};
  const Json* content = member(message, "content");
  const bool plain = message.size() == 2 && content != nullptr && content->is_string();
  if (!plain) out.json = parse::written_text(message);
  out.weight = weight;
  return out;
}

bool says_nothing(const ChatMessage& message) {
  if (!message.content.empty()) return false;
  if (message.json.empty()) return true;
  const auto whole = parsed(message.json);
  return !whole || !whole->is_object() || !calls_or_reasons(*whole);
}

ChatMessage with_words(const ChatMessage& message, const std::string& words) {
  ChatMessage out = message;
  out.content = words;
  if (message.json.empty()) return out;
  auto whole = parsed(message.json);
  if (!whole || !whole->is_object()) return out;
  for (const char* name : kReasoning)
    whole->erase(name);
  (*whole)["content"] = words;
  out.json = parse::written_text(*whole);
  return out;
}

Result<std::string> tools_of(const Json& tools) {
  const Json list = held_by(tools);
  if (list.is_null()) return std::string();
  const bool objects =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& tool) {
        return tool.is_object() && !tool.empty();
      });
  if (!objects) return bad("must be a list of tools, each an object, or the text of one");
  return list.empty() ? std::string() : parse::written_text(list);
}

Result<std::string> variables_of(const Json& variables) {
  const Json object = held_by(variables);
  if (object.is_null()) return std::string();
  if (!object.is_object()) return bad("must be an object, or the text of one");
  for (const auto& [name, value] : object.items()) {
    if (std::find(kReserved.begin(), kReserved.end(), name) == kReserved.end()) continue;
    return bad("may not set '" + name + "'");
  }
  return object.empty() ? std::string() : parse::written_text(object);
}

}  // namespace troupe::text
