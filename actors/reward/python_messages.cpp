#include "actors/reward/python_messages.hpp"

#include "actors/reward/reward_json.hpp"
#include "actors/reward/worker_words.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/parse/written_numbers.hpp"

namespace troupe::actors::reward {
namespace {

using nlohmann::json;

std::string dump_line(const json& value) {
  return parse::written_text(value);
}

std::vector<std::string> extras_of(const json& reply) {
  std::vector<std::string> extras;
  for (const json& extra : reply.value("extras", json::array()))
    extras.push_back(extra.is_object() && !extra.empty() ? dump_line(extra) : std::string());
  return extras;
}

}  // namespace

core::Result<PythonGreeting> read_greeting(const json& line, const std::string& where) {
  if (!line.value("ready", false)) {
    const core::Error error = refused_file(line, where, kInterpreterKey).error;
    if (!error.advice().empty()) return core::fail(error);
    return core::fail(error.advising("mend the file (docs/write_a_reward.md)"));
  }
  PythonGreeting greeting;
  // null for all columns, else a list of names
  const json columns = line.value("columns", json());
  greeting.reads.all_columns = !columns.is_array();
  if (columns.is_array()) greeting.reads.columns = columns.get<std::vector<std::string>>();
  greeting.reads.messages = line.value("messages", false);
  greeting.reads.tokens = line.value("tokens", false);
  const json needs = line.value("needs", json::array());
  if (needs.is_array()) greeting.needs = needs.get<std::vector<std::string>>();
  greeting.is_async = line.value("async", false);
  return greeting;
}

std::string python_request(std::uint64_t id, const std::vector<RewardGroup>& groups) {
  json request = {{"id", id},
                  {"groups", json::array()},
                  {"update", groups.empty() ? 0 : groups.front().update}};
  for (const RewardGroup& group : groups) {
    json columns = parse::written_json<json>(group.columns.empty() ? "{}" : group.columns);
    json messages = parse::written_json<json>(group.messages.empty() ? "null" : group.messages);
    json one = {{"prompt", group.prompt},
                {"label", group.label},
                {"columns", columns.is_object() ? std::move(columns) : json::object()},
                {"messages", messages.is_array() ? std::move(messages) : json()},
                {"responses", json::array()},
                {"tokens", json::array()}};
    for (const RewardSample& sample : group.samples) {
      one["responses"].push_back(sample.response);
      one["tokens"].push_back(sample.tokens);
    }
    request["groups"].push_back(std::move(one));
  }
  return dump_line(request);
}

core::Result<std::vector<RewardScore>> read_python_reply(const json& reply,
                                                         std::size_t count,
                                                         const std::string& where) {
  if (reply.contains("error")) {
    const json& error = reply["error"];
    return core::fail(
        ErrorCode::kData,
        where + " raised:" +
            core::foreign(error.is_string() ? error.get<std::string>() : dump_line(error)));
  }
  const json rewards = reply.value("rewards", json());
  if (!rewards.is_array() || rewards.size() != count) {
    return core::fail(ErrorCode::kData, where + ": the reply has the wrong number of rewards");
  }
  const json causes = reply.value("causes", json::array());
  const json returned = reply.value("returned", json::array());
  const auto cause_of = [&](std::size_t sample) {
    const bool said = causes.is_array() && sample < causes.size() && causes[sample].is_string() &&
                      !causes[sample].get_ref<const std::string&>().empty();
    if (said) return causes[sample].get<std::string>();
    const bool shown = returned.is_array() && sample < returned.size() &&
                       returned[sample].is_string() &&
                       !returned[sample].get_ref<const std::string&>().empty();
    return where + " returned " +
           (shown ? returned[sample].get<std::string>() + ", which is not a finite number,"
                  : std::string("no finite number")) +
           " for the sample";
  };
  std::vector<RewardScore> scores;
  for (const json& value : rewards) {
    if (const auto number = parse::number_in(value)) {
      scores.push_back({*number, ""});
    } else {
      scores.push_back({std::nullopt, cause_of(scores.size())});
    }
  }
  if (auto added = add_extras(extras_of(reply), scores); !added) {
    return core::fail(added.error().within(where));
  }
  return scores;
}

}  // namespace troupe::actors::reward
