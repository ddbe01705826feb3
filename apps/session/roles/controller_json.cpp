// Field by field.
#include "apps/session/roles/controller_json.hpp"

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
  return object.dump();
}

}  // namespace troupe::app
