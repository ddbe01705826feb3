// Decides which roles of an earlier head a company keeps when their node joins. Pure. Owned by the
// company, used on its strand.
//
// A role is kept when it is wanted where it runs, belongs to this run, was started by an earlier
// head, and with the same configuration. A generator is kept only together with the policy whose
// weights it has.
#pragma once

#include "actors/company/role_placement.hpp"
#include "actors/protocol/messages_node.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors::company {

class Adoption {
 public:
  Adoption(std::uint64_t run_id, std::uint64_t generation, std::string config)
      : run_id_(run_id), generation_(generation), config_(std::move(config)) {}

  // The roles of the node that the placement takes over, which are `starting` there now.
  std::vector<HostedRole> keep(const Join& join, RolePlacement& placement) const;

  // The name for the generator of a node that nobody here started: the one that it had under an
  // earlier head, or the next that is free.
  std::string name_generator(const Join& join, const RolePlacement& placement);

  // Generators that are up with weights of a policy that is gone.
  std::vector<HostedRole> leftovers(const RolePlacement& placement) const;

 private:
  bool is_old(std::uint64_t epoch) const;
  bool policy_is_new(const RolePlacement& placement) const;

  const std::uint64_t run_id_, generation_;
  const std::string config_;
  std::uint64_t next_generator_ = 0;
};

}  // namespace troupe::actors::company
