#include "runtime/text/message_forms.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/text/messages.hpp"

#include <nlohmann/json.hpp>

#include <utility>
#include <vector>

namespace troupe::text {

using Json = nlohmann::ordered_json;

namespace {

// Names that are put into parts and arguments, to see in what form a template prints them.
constexpr const char* kPartMark = "troupe-part-mark";
constexpr const char* kArgumentMark = "troupe-argument-mark";

struct Form {
  bool joined = false;          // parts as one text
  bool arguments_text = false;  // arguments as text
  bool filled = false;          // an empty text where a message has no content
  bool marked = false;          // with the marks
};

// As Python's json.dumps writes it, but for its escapes.
std::string spaced(const Json& value) {
  std::string out;
  const auto item = [&out](bool& first) {
    if (!first) out += ", ";
    first = false;
  };
  bool first = true;
  if (value.is_object()) {
    out = "{";
    for (const auto& [name, inner] : value.items()) {
      item(first);
      out += parse::written_text(Json(name)) + ": " + spaced(inner);
    }
    return out + "}";
  }
  if (!value.is_array()) return parse::written_text(value);
  out = "[";
  for (const Json& inner : value) {
    item(first);
    out += spaced(inner);
  }
  return out + "]";
}

// The functions that a message calls, in OpenAI's form or without the object around them.
std::vector<Json*> functions_of(Json& message) {
  std::vector<Json*> out;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return out;
  for (Json& call : *calls) {
    if (!call.is_object()) continue;
    Json& function = call.contains("function") ? call["function"] : call;
    if (function.is_object()) out.push_back(&function);
  }
  return out;
}

void put_arguments(Json& function, const Form& form) {
  const Json given = function.value("arguments", Json());
  auto object = arguments_of(given);
  if (!object) return;
  if (form.arguments_text) {
    const bool written = given.is_string() && !given.get_ref<const std::string&>().empty();
    function["arguments"] = written ? given : Json(spaced(*object));
    return;
  }
  if (form.marked) (*object)[kArgumentMark] = "";
  function["arguments"] = std::move(*object);
}

std::string in_form(Json messages, const Form& form) {
  for (Json& message : messages) {
    if (!message.is_object()) continue;
    for (Json* function : functions_of(message))
      put_arguments(*function, form);
    if (form.filled && message.value("content", Json()).is_null()) message["content"] = "";
    if (!has_text_parts(message)) continue;
    if (form.joined) message["content"] = text_of_content(message);
    if (form.marked) {
      for (Json& part : message["content"])
        part[kPartMark] = "";
    }
  }
  return parse::written_text(messages);
}

// How Python prints the name of a member of a dict.
bool printed_as_python(const std::string& text, const std::string& name) {
  return text.find("'" + name + "'") != text.npos;
}

}  // namespace

Result<std::string> render_in_form(
    std::string_view messages_json,
    const std::function<Result<std::string>(const std::string&)>& render) {
  const bool plain = messages_json.find("\"tool_calls\"") == messages_json.npos &&
                     messages_json.find("\"type\"") == messages_json.npos;
  if (plain) return render(std::string(messages_json));
  // Deeper than the bound of what is read: calls and parts are nested in messages.
  const auto messages = parse::bounded_json<Json>(
      messages_json, {.depth_max = 2 * static_cast<int>(parse::limits::kJsonDepth_max),
                      .numbers = parse::Numbers::kWholeIntegers});
  if (!messages || !messages->is_array()) return render(std::string(messages_json));
  bool parts = false, calls = false;
  for (Json message : *messages) {
    if (!message.is_object()) continue;
    parts = parts || has_text_parts(message);
    calls = calls || !functions_of(message).empty();
  }
  if (!parts && !calls) return render(std::string(messages_json));
  Form form;
  if (const auto seen = render(in_form(*messages, {.marked = true}))) {
    form.joined = parts && printed_as_python(*seen, kPartMark);
    form.arguments_text = calls && printed_as_python(*seen, kArgumentMark);
  }
  auto first = render(in_form(*messages, form));
  if (first) return first;
  for (const bool filled : {false, true}) {
    for (const bool joined : {false, true}) {
      for (const bool text : {false, true}) {
        if ((joined && !parts) || (text && !calls)) continue;
        auto other = render(in_form(*messages, {joined, text, filled}));
        if (other) return other;
      }
    }
  }
  return first;
}

}  // namespace troupe::text
