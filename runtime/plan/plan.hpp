// The plan of a run: where its roles are, what each device must hold, and whether it can. Computed
// from plain facts (apps/troupe/plan reads them from a configuration). Pure; value types.
#pragma once

#include "runtime/plan/batch.hpp"
#include "runtime/plan/placement.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::plan {

struct RunFacts {
  Cluster cluster;
  std::vector<Role> roles;  // the first is the trained model
  Place place;              // how teams allocate there
  BatchFacts batch;
  bool lanes_set = false;  // the configuration says how many; else there are as many as ranks
};

// Devices that hold the same and are alike in the plan.
struct DeviceLoad {
  std::int64_t device = 0;         // the first of them
  std::int64_t devices = 1;        // how many
  std::vector<std::size_t> roles;  // roles on it, one entry for each rank or engine
  std::int64_t bytes = 0;
};

struct HostLoad {
  std::int64_t node = 0;
  std::int64_t bytes = 0;
};

// Something that does not fit.
struct Shortfall {
  std::size_t role = 0;  // the one that takes most there
  std::string where;     // "node 0 device 3"
  std::int64_t need = 0, have = 0;
  bool host = false;  // the memory of a node, not of a device
};

struct Push {
  std::int64_t image = 0;    // bytes of one version of the weights
  std::int64_t engines = 0;  // receivers of it
  std::int64_t remote = 0;   // of them on other nodes than the policy's first rank
};

struct Plan {
  Placement placement;
  std::vector<MemoryUse> memory;  // by role, of one rank or engine
  std::vector<DeviceLoad> loads;
  HostLoad fullest_host;  // of the nodes, besides devices
  Batch batch;
  Push push;
  std::vector<Shortfall> shortfalls;  // at most one a role
  bool judged = false;                // whether the memory that is there is known
  bool fits() const { return shortfalls.empty(); }
};

// Errors kConfig, naming the flag: facts that contradict each other (more ranks than lanes or
// samples, a stage or offload that nothing can use), too few devices, too small micro-batches.
core::Result<Plan> plan_of(const RunFacts& facts);

}  // namespace troupe::plan
