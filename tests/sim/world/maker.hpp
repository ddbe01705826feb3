// Makes the roles of a simulated process as the program's loader does, with fakes where the
// arithmetic is. Owned by the node; outlives its roles.
#pragma once

#include "actors/node/node_role.hpp"
#include "tests/sim/world/stage.hpp"

namespace troupe::sim {

class Maker final : public actors::RoleMaker {
 public:
  Maker(Stage& stage, Process& process)
      : stage_(stage), process_(process), disk_(stage.disk, process) {}
  async::task<core::Result<cluster::RoleRecipe>> make(actors::Spawn spawn) override;

  // The role of a reward, which a guest brings, too.
  cluster::RoleRecipe reward(const std::string& role);

 private:
  cluster::RoleRecipe policy();
  cluster::RoleRecipe critic();
  cluster::RoleRecipe generator(const std::string& role);
  cluster::RoleRecipe reference();

  Stage& stage_;
  Process& process_;
  DiskView disk_;
};

}  // namespace troupe::sim
