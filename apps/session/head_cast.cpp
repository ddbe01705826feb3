// Role by role.
#include "apps/session/head_cast.hpp"

#include "apps/session/roles/learn_settings.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/role_factories.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::app {
namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

void cast_roles(const config::TrainConfig& config, actors::CompanyOptions& options) {
  const auto add = [&](const std::string& kind, const std::string& name, const std::string& node) {
    const bool here = contains(config.cluster.local_roles, kind);
    if (here) options.local_nodes.push_back({"node/" + node, {kind}});
    options.roles.push_back({kind, name, here ? "node/" + node : ""});
  };
  add("policy", "policy/0", "policy");
  if (has_critic(config)) add("critic", "critic/0", "critic");
  for (const RewardPart& part : reward_parts(config)) {
    const std::string node = part.folder.empty() ? "reward" : "reward-" + part.name;
    add("reward", part.role, node);
  }
  if (has_reference(config)) add("reference", "reference/0", "reference");
  if (!contains(config.cluster.local_roles, "generator")) return;
  for (std::int64_t i = 0; i < config.rollout.generators; ++i) {
    const std::string number = std::to_string(i);
    add("generator", "generator/" + number, "generator-" + number);
  }
}

}  // namespace troupe::app
