// Which device each rank, engine and scorer of a run gets. Roles take free devices in order, so the
// ranks of one role are neighbours; a role whose devices the configuration names gets those, and
// may share them. Pure; value types.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/plan/cluster.hpp"
#include "runtime/plan/role_memory.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe::plan {

using RoleFacts = std::variant<TrainerFacts, EngineFacts, ScorerFacts>;

struct Role {
  std::string name;  // "policy", "generator", "reward/rm-small"
  RoleFacts facts;
  std::int64_t count = 1;           // of ranks or engines
  std::string flag;                 // the flag that changes the count; empty: none
  std::vector<std::int64_t> named;  // devices of the one node, used in turn; empty: any
  std::string key;                  // that names them

  MemoryUse memory(const Place& place) const;
};

struct Placement {
  // [role][member] of devices.
  std::vector<std::vector<std::int64_t>> devices;
  std::int64_t idle = 0;  // unused devices
};

// Error kConfig, naming the flag: more devices than there are, or a named one that is not there.
core::Result<Placement> place(const std::vector<Role>& roles, const Cluster& cluster);

}  // namespace troupe::plan
