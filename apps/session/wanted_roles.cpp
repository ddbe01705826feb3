#include "apps/session/wanted_roles.hpp"

#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/teachers.hpp"

#include <algorithm>

namespace troupe::session {
namespace {

// An environment is where rewards are.
bool is_here(const config::TrainConfig& config, const std::string& kind) {
  return runs_here(config, kind == "environment" ? "reward" : kind);
}

}  // namespace

std::vector<actors::company::WantedRole> wanted_roles(const config::TrainConfig& config) {
  std::vector<actors::company::WantedRole> roles;
  const auto add = [&](const std::string& kind, const std::string& name, const std::string& node) {
    roles.push_back({kind, name, is_here(config, kind) ? "node/" + node : ""});
  };
  const auto add_ranks = [&](const std::string& kind, const std::string& first,
                             std::int64_t ranks) {
    add(kind, first, kind);
    for (std::int64_t rank = 1; rank < ranks; ++rank) {
      const std::string number = std::to_string(rank);
      add(kind, kind + "/" + number, kind + "-" + number);
      const std::int64_t here = config.cluster.local_ranks;
      if (here > 0 && rank >= here) roles.back().bound.clear();
    }
    if (ranks < 2) return;
    for (actors::company::WantedRole& role : roles)
      role.ranked = role.ranked || role.kind == kind;
  };
  add_ranks("policy", actors::controller::kPolicyRole, config.actor.ranks);
  if (has_critic(config)) add_ranks("critic", actors::controller::kCriticRole, config.critic.ranks);
  if (config.method != config::kPpo) return roles;
  for (const RewardPart& part : reward_parts(config)) {
    if (part.kind == RewardPart::Kind::kFeedback) continue;  // comes with the samples
    // What asks others and computes nothing shares a process.
    const bool computes = !part.folder.empty();
    std::string node = computes ? "reward-" + part.name : "reward";
    if (!part.set.empty()) {
      node = "reward-eval";
      if (computes) node += "-" + part.set + "-" + part.name;
    }
    add("reward", part.role, node);
  }
  if (has_environment(config) && !config.env.attached)
    add("environment", "environment/0", "environment");
  if (has_reference(config)) add("reference", "reference/0", "reference");
  for (const TeacherPart& part : teacher_parts(config)) {
    const std::string number = part.role.substr(part.role.find('/') + 1);
    add("teacher", part.role, number == "0" ? "teacher" : "teacher-" + number);
  }
  if (!runs_here(config, "generator")) return roles;
  const bool alone = config.cluster.transport == config::Transport::kLoopback;
  const auto generators = std::max<std::int64_t>(config.rollout.generators, alone ? 1 : 0);
  for (std::int64_t i = 0; i < generators; ++i) {
    const std::string number = std::to_string(i);
    add("generator", "generator/" + number, "generator-" + number);
  }
  return roles;
}

std::vector<std::string> needed_kinds(const config::TrainConfig& config) {
  const auto roles = wanted_roles(config);
  std::vector<std::string> kinds = {"policy", "reward",    "environment",
                                    "critic", "reference", "teacher"};
  std::erase_if(kinds, [&roles](const std::string& kind) {
    return std::ranges::count(roles, kind, &actors::company::WantedRole::kind) == 0;
  });
  return kinds;
}

std::string awaited_kinds(const config::TrainConfig& config) {
  std::string kinds;
  const auto add = [&](const std::string& kind, bool wanted, bool elsewhere = false) {
    const bool local = is_here(config, kind) && !elsewhere &&
                       (kind != "generator" || config.rollout.generators > 0);
    if (wanted && !local) kinds += (kinds.empty() ? "" : ",") + kind;
  };
  const std::int64_t here = config.cluster.local_ranks;
  const auto elsewhere = [here](std::int64_t ranks) { return here > 0 && ranks > here; };
  const bool ppo = config.method == config::kPpo;
  if (ppo) add("generator", true);
  if (elsewhere(config.actor.ranks)) kinds += (kinds.empty() ? "" : ",") + std::string("policy");
  add("critic", has_critic(config), elsewhere(config.critic.ranks));
  if (ppo) add("reward", true);
  add("environment", has_environment(config) && !config.env.attached);
  add("reference", has_reference(config));
  add("teacher", ppo && has_teacher(config));
  return kinds;
}

}  // namespace troupe::session
