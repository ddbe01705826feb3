// Makes the roles of a simulated process as the program's loader does, with fakes where the
// arithmetic is. Owned by the node; outlives its roles.
#pragma once

#include "actors/node/node_role.hpp"
#include "tests/sim/world/stage.hpp"

#include <list>
#include <memory>

namespace troupe::sim {

class Maker final : public actors::node::RoleMaker {
 public:
  Maker(Stage& stage, Process& process)
      : stage_(stage), process_(process), disk_(stage.disk, process) {}
  async::task<core::Result<cluster::RoleRecipe>> make(actors::Spawn spawn) override;
  void abandon(const std::string& role, std::uint64_t epoch) override {
    stage_.gangs.abandon(role, epoch);
  }
  // The node's role, by which ranks ask the company.
  void ask_with(const actors::RoleContext& context) { context_ = context; }

  // The role of a reward, which a guest brings, too.
  cluster::RoleRecipe reward(const std::string& role);

 private:
  async::task<core::Result<void>> meet(actors::Spawn spawn);
  static cluster::RoleRecipe follower();
  async::DeviceQueue& device_of(const actors::Spawn& spawn);
  cluster::RoleRecipe policy(const actors::Spawn& spawn);
  cluster::RoleRecipe supervised(const actors::Spawn& spawn);
  cluster::RoleRecipe critic(const actors::Spawn& spawn);
  cluster::RoleRecipe generator(const std::string& role);
  cluster::RoleRecipe reference();

  Stage& stage_;
  Process& process_;
  DiskView disk_;
  actors::RoleContext context_;
  std::list<std::unique_ptr<async::DeviceQueue>> devices_;  // around those of the process
};

}  // namespace troupe::sim
