// How a node turns a Spawn message into a role: whoever wires the process knows what each kind
// needs.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "runtime/cluster/role_host.hpp"

#include <memory>

namespace troupe::actors {

class RoleMaker {
 public:
  virtual ~RoleMaker() = default;
  // Loads what the role needs; slow parts run off the caller's strand. Errors name file and flag.
  virtual async::task<core::Result<cluster::RoleRecipe>> make(Spawn spawn) = 0;
};

}  // namespace troupe::actors
