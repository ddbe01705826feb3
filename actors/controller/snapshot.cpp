#include "actors/controller/snapshot.hpp"

#include "actors/protocol/reward_member_json.hpp"

namespace troupe::actors::controller {

std::string snapshot_json(const ControllerSnapshot& snapshot) {
  nlohmann::json generators = nlohmann::json::array();
  for (const GeneratorLine& line : snapshot.generators) {
    nlohmann::json one = {{"name", line.name},
                          {"state", line.state},
                          {"groups", line.groups},
                          {"samples", line.samples}};
    if (line.version) one["version"] = *line.version;
    generators.push_back(std::move(one));
  }
  nlohmann::json object = {
      {"version", snapshot.version},         {"updates_done", snapshot.done},
      {"updates_issued", snapshot.issued},   {"tickets_waiting", snapshot.queue},
      {"generators", std::move(generators)}, {"staleness_tokens", snapshot.staleness},
      {"counts", snapshot.counts},           {"reward_set", snapshot.reward_set},
      {"rewards", snapshot.rewards}};
  if (!snapshot.formula.empty()) object["formula"] = snapshot.formula;
  return object.dump();
}

}  // namespace troupe::actors::controller
