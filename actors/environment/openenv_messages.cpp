#include "actors/environment/openenv_messages.hpp"

#include "runtime/core/foreign_text.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::environment {
namespace {

using Json = nlohmann::json;

// What is under a name; null where nothing is, or `object` is none.
const Json& field_of(const Json& object, const char* name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text_in(const Json& object, const char* name) {
  const Json& value = field_of(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

core::Result<void> check_names(const Json& form,
                               const std::string& key,
                               const std::vector<std::string>& known) {
  if (form.is_structured()) {
    for (const Json& one : form)
      TROUPE_TRY(check_names(one, key, known));
  }
  if (!form.is_string() || !form.get_ref<const std::string&>().starts_with('$')) return {};
  const std::string name = form.get<std::string>().substr(1);
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string all;
  for (const std::string& one : known)
    all += (all.empty() ? "$" : ", $") + one;
  return core::fail(ErrorCode::kConfig, key + ": $" + name + " is not known", "it may hold " + all);
}

core::Failure error_of_server(const Json& data) {
  const std::string code = text_in(data, "code"), message = text_in(data, "message");
  std::string text =
      "the server answered " + (code.empty() ? "an error" : code) + ":" + core::foreign(message);
  const Json& more = field_of(data, "errors");
  if (more.is_array()) text = core::with_fact(text, core::quoted(more.dump(), 600));
  return core::fail(code == "CAPACITY_REACHED"   ? ErrorCode::kOverloaded
                    : code == "VALIDATION_ERROR" ? ErrorCode::kInvalidArgument
                                                 : ErrorCode::kData,
                    text);
}

core::Failure no_answer(const std::string& why) {
  return core::fail(ErrorCode::kData, "its answer does not follow OpenEnv: " + why);
}

}  // namespace

core::Result<Json> read_template(const std::string& text,
                                 const std::string& key,
                                 const std::vector<std::string>& known) {
  auto form = parse::bounded_json<Json>(text, {});
  if (!form) return core::fail(ErrorCode::kConfig, key + " " + form.error().message);
  if (!form->is_object()) {
    return core::fail(ErrorCode::kConfig,
                      key + " must be a JSON object, as {\"message\": \"$text\"}");
  }
  TROUPE_TRY(check_names(*form, key, known));
  return form;
}

Json filled(const Json& form, const std::map<std::string, Json>& values) {
  if (form.is_string() && form.get_ref<const std::string&>().starts_with('$')) {
    const auto found = values.find(form.get<std::string>().substr(1));
    return found == values.end() ? form : found->second;
  }
  Json out = form;
  if (out.is_structured()) {
    for (Json& one : out)
      one = filled(one, values);
  }
  return out;
}

std::string openenv_message(std::string_view type, const Json& data) {
  Json message = {{"type", type}};
  if (!data.is_null()) message["data"] = data;
  return parse::written_text(message);
}

core::Result<OpenEnvAnswer> read_openenv_answer(const std::string& text) {
  auto parsed = parse::bounded_json<Json>(text, {.numbers = parse::Numbers::kWholeIntegers});
  if (!parsed) return no_answer("it " + parsed.error().message);
  const Json& data = field_of(*parsed, "data");
  const std::string type = text_in(*parsed, "type");
  if (type == "error") return error_of_server(data);
  if (type != "observation") return no_answer("its type is `" + type.substr(0, 100) + "`");
  OpenEnvAnswer answer;
  answer.observation = field_of(data, "observation");
  if (!answer.observation.is_object()) return no_answer("it has no object `observation`");
  answer.observation.erase("metadata");
  const Json& reward = field_of(data, "reward");
  if (reward.is_boolean()) {
    answer.reward = reward.get<bool>() ? 1.0 : 0.0;
  } else if (const auto number = parse::number_in(reward); number && std::isfinite(*number)) {
    answer.reward = *number;
  } else if (!reward.is_null()) {
    return no_answer("its `reward` is not a finite number");
  }
  const Json& done = field_of(data, "done");
  if (!done.is_boolean()) return no_answer("its `done` is neither true nor false");
  answer.done = done.get<bool>();
  return answer;
}

core::Result<std::string> observation_text(const Json& observation, const std::string& field) {
  const auto shown = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : parse::written_text(value);
  };
  if (!field.empty()) {
    const auto found = observation.find(field);
    if (found != observation.end()) return shown(*found);
    return core::fail(ErrorCode::kData, "the observation has no field `" + field + "`");
  }
  if (observation.size() == 1 && observation.begin()->is_string()) {
    return shown(*observation.begin());
  }
  return shown(observation);
}

core::Result<Json> action_tool(const std::string& schema) {
  auto parsed = parse::bounded_json<Json>(schema, {});
  if (!parsed) return no_answer("/schema " + parsed.error().message);
  Json action = field_of(*parsed, "action");
  if (!action.is_object() || !field_of(action, "properties").is_object()) {
    return no_answer("/schema has no `action` with `properties`");
  }
  action["properties"].erase("metadata");  // of every action; nothing that a policy knows
  std::string text = text_in(action, "description");
  if (text.empty()) text = "Acts in the environment.";
  action.erase("description");
  action.erase("title");
  const Json function = {{"name", kActionTool}, {"description", text}, {"parameters", action}};
  return Json{{"type", "function"}, {"function", function}};
}

core::Result<Json> action_of_call(const Json& call) {
  const Json& function = field_of(call, "function");
  const std::string name = text_in(function, "name");
  if (name != kActionTool) {
    return core::fail(ErrorCode::kInvalidArgument, "there is no tool `" + name.substr(0, 100) + "`",
                      "call `act`");
  }
  Json arguments = field_of(function, "arguments");
  if (arguments.is_string()) {
    auto parsed = parse::bounded_json<Json>(arguments.get_ref<const std::string&>(),
                                            {.numbers = parse::Numbers::kAsWritten});
    arguments = parsed ? std::move(*parsed) : Json();
  }
  if (arguments.is_object()) return arguments;
  return core::fail(ErrorCode::kInvalidArgument, "the arguments of `act` must be a JSON object");
}

Json openenv_prompt(const EpisodeStart& start, const std::string& observation) {
  Json messages = parse::written_json<Json>(start.messages);
  if (!messages.is_array()) messages = Json::array();
  if (messages.empty() && !start.prompt.empty()) {
    messages.push_back({{"role", "user"}, {"content", start.prompt}});
  }
  const bool goes_on = !messages.empty() && text_in(messages.back(), "role") == "user" &&
                       field_of(messages.back(), "content").is_string();
  if (goes_on) {
    const std::string asked = messages.back()["content"].get<std::string>();
    messages.back()["content"] = asked + (observation.empty() ? "" : "\n\n" + observation);
  } else {
    messages.push_back({{"role", "user"}, {"content", observation}});
  }
  return messages;
}

}  // namespace troupe::actors::environment
