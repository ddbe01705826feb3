#include "runtime/plan/plan.hpp"

#include "runtime/core/error_list.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace troupe::plan {
namespace {

void check_trainer(const Role& role, const RunFacts& facts, core::ErrorList& wrong) {
  const auto& trainer = std::get<TrainerFacts>(role.facts);
  const std::int64_t ranks = trainer.ranks.count;
  if (facts.lanes_set && ranks > facts.batch.lanes) {
    wrong.add(ErrorCode::kConfig,
              role.flag + " " + std::to_string(ranks) + ": more ranks than lanes (" +
                  std::to_string(facts.batch.lanes) + ")",
              "raise --train.lanes or give fewer");
  }
  const std::int64_t samples = facts.batch.groups * facts.batch.samples;
  if (ranks > samples) {
    wrong.add(ErrorCode::kConfig,
              role.flag + " " + std::to_string(ranks) + ": a step has only " +
                  std::to_string(samples) + " samples",
              "raise --train.batch_size or give fewer");
  }
  if (trainer.ranks.offload && facts.cluster.on_host()) {
    wrong.add(ErrorCode::kConfig, "--offload: without devices everything is on the host",
              "give --cluster or leave it out");
  }
}

core::Result<void> check_facts(const RunFacts& facts) {
  core::ErrorList wrong;
  std::int64_t most_ranks = 1, stage = 0;
  for (const Role& role : facts.roles) {
    const auto* trainer = std::get_if<TrainerFacts>(&role.facts);
    if (trainer == nullptr) continue;
    check_trainer(role, facts, wrong);
    most_ranks = std::max(most_ranks, trainer->ranks.count);
    stage = std::max(stage, trainer->ranks.zero_stage);
  }
  if (stage > 0 && most_ranks == 1) {
    wrong.add(ErrorCode::kConfig,
              "--zero-stage " + std::to_string(stage) + ": one rank shares nothing",
              "give --actor-ranks as well");
  }
  return wrong.result();
}

// By device, the roles that are on it: one entry for each rank or engine.
std::map<std::int64_t, std::vector<std::size_t>> roles_by_device(const Placement& placed) {
  std::map<std::int64_t, std::vector<std::size_t>> roles;
  for (std::size_t role = 0; role < placed.devices.size(); ++role) {
    for (const std::int64_t device : placed.devices[role])
      roles[device].push_back(role);
  }
  return roles;
}

std::vector<DeviceLoad> loads_of(const Placement& placed, const std::vector<MemoryUse>& memory) {
  std::vector<DeviceLoad> loads;
  for (const auto& [device, roles] : roles_by_device(placed)) {
    const auto same = std::find_if(loads.begin(), loads.end(), [&roles = roles](const auto& load) {
      return load.roles == roles;
    });
    if (same != loads.end()) {
      ++same->devices;
      continue;
    }
    DeviceLoad load{device, 1, roles, 0};
    for (const std::size_t role : roles)
      load.bytes += memory[role].device_total();
    loads.push_back(load);
  }
  return loads;
}

// The node whose host holds most.
HostLoad fullest(const Placement& placed,
                 const std::vector<MemoryUse>& memory,
                 const Cluster& cluster) {
  std::map<std::int64_t, std::int64_t> nodes;
  for (std::size_t role = 0; role < placed.devices.size(); ++role) {
    for (const std::int64_t device : placed.devices[role])
      nodes[cluster.node_of(device)] += memory[role].host_total();
  }
  HostLoad most;
  for (const auto& [node, bytes] : nodes) {
    if (bytes > most.bytes) most = {node, bytes};
  }
  return most;
}

std::size_t largest_role(const std::vector<std::size_t>& roles,
                         const std::vector<MemoryUse>& memory) {
  return *std::max_element(roles.begin(), roles.end(), [&](std::size_t a, std::size_t b) {
    return memory[a].device_total() < memory[b].device_total();
  });
}

void add_shortfalls(const Cluster& cluster, Plan& plan) {
  plan.judged = cluster.device_bytes > 0;
  const auto known = [&plan](std::size_t role, bool host) {
    return std::any_of(plan.shortfalls.begin(), plan.shortfalls.end(),
                       [&](const auto& one) { return one.role == role && one.host == host; });
  };
  for (const DeviceLoad& load : plan.loads) {
    if (!plan.judged || load.bytes <= cluster.device_bytes) continue;
    const std::size_t role = largest_role(load.roles, plan.memory);
    if (known(role, false)) continue;
    plan.shortfalls.push_back(
        {role, cluster.name_of(load.device), load.bytes, cluster.device_bytes, false});
  }
  if (cluster.on_host() || cluster.host_bytes == 0) return;
  if (plan.fullest_host.bytes <= cluster.host_bytes) return;
  const auto most = std::max_element(
      plan.memory.begin(), plan.memory.end(),
      [](const MemoryUse& a, const MemoryUse& b) { return a.host_total() < b.host_total(); });
  plan.shortfalls.push_back({static_cast<std::size_t>(std::distance(plan.memory.begin(), most)),
                             "the host of node " + std::to_string(plan.fullest_host.node),
                             plan.fullest_host.bytes, cluster.host_bytes, true});
}

Push push_of(const RunFacts& facts, const Placement& placed) {
  Push push;
  const auto& policy = std::get<TrainerFacts>(facts.roles.front().facts);
  push.image = policy.image();
  const std::int64_t home = facts.cluster.node_of(placed.devices.front().front());
  for (std::size_t role = 0; role < facts.roles.size(); ++role) {
    if (!std::holds_alternative<EngineFacts>(facts.roles[role].facts)) continue;
    for (const std::int64_t device : placed.devices[role]) {
      ++push.engines;
      push.remote += facts.cluster.node_of(device) != home ? 1 : 0;
    }
  }
  return push;
}

}  // namespace

core::Result<Plan> plan_of(const RunFacts& facts) {
  TROUPE_TRY(check_facts(facts));
  Plan plan;
  TROUPE_TRY_SET(plan.batch, batch_of(facts.batch));
  TROUPE_TRY_SET(plan.placement, place(facts.roles, facts.cluster));
  for (const Role& role : facts.roles)
    plan.memory.push_back(role.memory(facts.place));
  plan.loads = loads_of(plan.placement, plan.memory);
  plan.fullest_host = fullest(plan.placement, plan.memory, facts.cluster);
  plan.push = push_of(facts, plan.placement);
  add_shortfalls(facts.cluster, plan);
  return plan;
}

}  // namespace troupe::plan
