#include "actors/environment/environment_messages.hpp"

#include "actors/protocol/limits.hpp"
#include "actors/reward/limits.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <cmath>

namespace troupe::actors::environment {
namespace {

using Json = nlohmann::json;

std::string one_line(const Json& value) {
  return parse::written_text(value);
}

Json parsed_or(const std::string& text, Json otherwise) {
  Json value = parse::written_json<Json>(text);
  return value.type() == otherwise.type() ? value : otherwise;
}

core::Failure wrong(const char* name, const char* wanted) {
  return core::fail(ErrorCode::kData, std::string("`") + name + "` must be " + wanted);
}

// What is said under a name; null where nothing is.
const Json& said_of(const Json& said, const char* name) {
  static const Json none;
  const auto found = said.find(name);
  return found == said.end() ? none : *found;
}

core::Result<std::optional<double>> number_of(const Json& said, const char* name) {
  const Json& value = said_of(said, name);
  if (value.is_null()) return std::optional<double>();
  const auto number = parse::number_in(value);
  if (!number || !std::isfinite(*number)) return wrong(name, "a finite number");
  return number;
}

core::Result<std::string> messages_of(const Json& said) {
  const Json& value = said_of(said, "messages");
  if (value.is_null()) return std::string();
  if (!value.is_array()) return wrong("messages", "a list");
  for (const Json& one : value) {
    const auto role = one.is_object() ? one.find("role") : one.end();
    if (!one.is_object() || role == one.end() || !role->is_string()) {
      return wrong("messages", "a list of objects with a role");
    }
  }
  return one_line(value);
}

core::Result<std::string> extras_of_turn(const Json& said) {
  const Json& value = said_of(said, "extras");
  if (value.is_null() || value.empty()) return std::string();
  if (!value.is_object()) return wrong("extras", "an object of numbers");
  for (const auto& [name, one] : value.items()) {
    if (!parse::number_in(one)) return wrong("extras", "an object of numbers");
  }
  std::string text = one_line(value);
  if (value.size() > actors::limits::kRewardExtras_max ||
      text.size() > reward::limits::kRewardExtra_bytes_max) {
    return core::fail(ErrorCode::kData,
                      "`extras` has more than " +
                          std::to_string(actors::limits::kRewardExtras_max) + " numbers or " +
                          std::to_string(reward::limits::kRewardExtra_bytes_max) + " bytes",
                      "report fewer");
  }
  return text;
}

}  // namespace

std::string open_request(std::uint64_t id, std::uint64_t episode, const EpisodeStart& start) {
  const Json given = {{"prompt", start.prompt},
                      {"messages", parsed_or(start.messages, Json::array())},
                      {"label", start.label},
                      {"columns", parsed_or(start.columns, Json::object())},
                      {"seed", start.seed}};
  return one_line({{"id", id}, {"episode", episode}, {"do", "open"}, {"start", given}});
}

std::string step_request(std::uint64_t id, std::uint64_t episode, const PolicyTurn& turn) {
  const Json plain = {{"role", "assistant"}, {"content", turn.text}};
  Json message = parse::written_json<Json>(turn.message);
  const Json given = {{"text", turn.text},
                      {"message", message.is_object() ? std::move(message) : plain},
                      {"cut", turn.cut}};
  return one_line({{"id", id}, {"episode", episode}, {"do", "step"}, {"turn", given}});
}

std::string finish_request(std::uint64_t id, std::uint64_t episode) {
  return one_line({{"id", id}, {"episode", episode}, {"do", "finish"}});
}

std::string cancel_request(std::uint64_t id, std::uint64_t late) {
  return one_line({{"id", id}, {"cancel", late}});
}

std::string close_notice(std::uint64_t episode) {
  return one_line({{"close", episode}});
}

core::Result<EnvironmentTurn> read_turn(const Json& said) {
  if (!said.is_object()) return core::fail(ErrorCode::kData, "a turn must be an object");
  EnvironmentTurn turn;
  TROUPE_TRY_SET(turn.messages, messages_of(said));
  const Json& text = said_of(said, "text");
  if (!text.is_null() && !text.is_string()) return wrong("text", "a text");
  if (text.is_string()) turn.text = text.get<std::string>();
  const Json& tools = said_of(said, "tools");
  if (!tools.is_null() && !tools.is_array()) return wrong("tools", "a list");
  if (tools.is_array() && !tools.empty()) turn.tools = one_line(tools);
  TROUPE_TRY_SET(turn.reward, number_of(said, "reward"));
  TROUPE_TRY_SET(turn.score, number_of(said, "score"));
  const Json& done = said_of(said, "done");
  if (!done.is_null() && !done.is_boolean()) return wrong("done", "true or false");
  turn.done = done.is_boolean() && done.get<bool>();
  TROUPE_TRY_SET(turn.extras, extras_of_turn(said));
  return turn;
}

core::Result<EnvironmentTurn> read_turn_reply(const Json& reply, const std::string& where) {
  if (const Json& error = said_of(reply, "error"); !error.is_null()) {
    const std::string text = error.is_string() ? error.get<std::string>() : one_line(error);
    return core::fail(ErrorCode::kData, where + " raised:" + core::foreign(text));
  }
  auto turn = read_turn(said_of(reply, "turn"));
  if (!turn) return core::fail(turn.error().within(where));
  return turn;
}

Json tool_calls_of(const PolicyTurn& turn) {
  const Json message = parse::written_json<Json>(turn.message);
  Json calls = Json::array();
  if (!message.is_object()) return calls;
  for (const Json& call : said_of(message, "tool_calls")) {
    if (call.is_object()) calls.push_back(call);
  }
  return calls;
}

}  // namespace troupe::actors::environment
