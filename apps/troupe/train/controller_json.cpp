// Field by field.
#include "apps/troupe/train/controller_json.hpp"

#include <nlohmann/json.hpp>

namespace troupe::app {

std::string controller_json(const actors::ControllerSnapshot& snapshot) {
  nlohmann::json generators = nlohmann::json::array();
  for (const actors::GeneratorLine& line : snapshot.generators) {
    nlohmann::json one = {{"name", line.name},
                          {"state", line.state},
                          {"groups", line.groups},
                          {"samples", line.samples}};
    if (line.version) one["version"] = *line.version;
    generators.push_back(std::move(one));
  }
  nlohmann::json members = nlohmann::json::array();
  for (const actors::RewardMember& member : snapshot.rewards) {
    members.push_back({{"name", member.name}, {"peer", member.peer}, {"weight", member.weight}});
  }
  nlohmann::json object = {
      {"version", snapshot.version},         {"updates_done", snapshot.done},
      {"updates_issued", snapshot.issued},   {"tickets_waiting", snapshot.queue},
      {"generators", std::move(generators)}, {"staleness_tokens", snapshot.staleness},
      {"counts", snapshot.counts},           {"reward_set", snapshot.reward_set},
      {"rewards", std::move(members)}};
  if (snapshot.weights) {
    const actors::WeightSource& at = snapshot.weights->source;
    object["weights"] = {{"version", snapshot.weights->version}, {"host_id", at.host_id},
                         {"socket", at.socket},                  {"tcp_host", at.tcp_host},
                         {"tcp_port", at.tcp_port},              {"key", at.key}};
  }
  return object.dump();
}

std::optional<actors::Published> published_of(const std::string& json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (!object.is_object() || !object.contains("weights")) return std::nullopt;
  const nlohmann::json& at = object["weights"];
  actors::Published out;
  out.version = at.value("version", core::Version{0});
  out.source.host_id = at.value("host_id", "");
  out.source.socket = at.value("socket", "");
  out.source.tcp_host = at.value("tcp_host", "");
  out.source.tcp_port = at.value("tcp_port", 0u);
  out.source.key = at.value("key", "");
  return out;
}

}  // namespace troupe::app
