#include "runtime/sessions/dialogue.hpp"

#include "runtime/parse/written_numbers.hpp"
#include "runtime/store/sha256.hpp"
#include "runtime/text/messages.hpp"

namespace troupe::sessions {

using Json = nlohmann::ordered_json;
using Sorted = nlohmann::json;  // its objects have their names in order

namespace {

bool holds_nothing(const Json& value) {
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty());
}

Sorted sorted(const Json& value) {
  return value;
}

Sorted canonical_call(const Json& call) {
  Sorted out = {{"id", sorted(call.value("id", Json()))}};
  const auto function = call.find("function");
  if (function == call.end() || !function->is_object()) return out;
  out["name"] = sorted(function->value("name", Json()));
  const Json given = function->value("arguments", Json());
  const auto arguments = text::arguments_of(given);
  out["arguments"] = sorted(arguments ? *arguments : given);
  return out;
}

std::string canonical(const Json& message) {
  Sorted out = Sorted::object();
  for (const auto& [name, value] : message.items()) {
    if (holds_nothing(value)) continue;
    if (name != "tool_calls" || !value.is_array()) {
      out[name] = sorted(value);
      continue;
    }
    out[name] = Sorted::array();
    for (const Json& call : value)
      out[name].push_back(call.is_object() ? canonical_call(call) : sorted(call));
  }
  if (text::has_text_parts(message)) out["content"] = text::text_of_content(message);
  if (!out.contains("content")) out["content"] = "";
  return parse::written_text(out);
}

}  // namespace

Digest digest_with(const Digest& before, const Json& message) {
  return store::sha256_text(before + canonical(message));
}

core::Result<Dialogue> dialogue_of(const dialects::GenerateRequest& request) {
  Dialogue out;
  out.messages = parse::written_json<Json>(request.messages_json);
  if (!out.messages.is_array())
    return core::fail(core::ErrorCode::kInvalidArgument, "messages must be a list of objects");
  out.digests.push_back(
      store::sha256_text(request.tools_json + "\n" + request.template_variables_json));
  for (const Json& message : out.messages) {
    if (!message.is_object())
      return core::fail(core::ErrorCode::kInvalidArgument, "messages must be a list of objects");
    out.digests.push_back(digest_with(out.digests.back(), message));
  }
  return out;
}

}  // namespace troupe::sessions
