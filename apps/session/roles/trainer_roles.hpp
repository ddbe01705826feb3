// Makes the roles that train: policy, critic, and the policy of a supervised method, each alone or
// as a rank of its gang. Owned by the role loader, used on its compute thread.
#pragma once

#include "actors/gang/follower_role.hpp"
#include "apps/session/roles/gang_ranks.hpp"
#include "apps/session/roles/one_process.hpp"
#include "apps/session/roles/role_threads.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/model/params.hpp"

#include <memory>
#include <optional>

namespace troupe::session {

class TrainerRoles {
 public:
  // Both outlive this object. `meet` and `gateway`: GangRanks.
  TrainerRoles(OneProcess& shared,
               RoleThreads& threads,
               actors::gang::AskToMeet meet,
               std::optional<collective::GatewayWay> gateway)
      : shared_(shared), threads_(threads), gangs_(std::move(meet), std::move(gateway)) {}

  core::Result<cluster::RoleRecipe> policy(const RoleOrder& order);
  core::Result<cluster::RoleRecipe> critic(const RoleOrder& order);
  // The weights of a policy of this process as it began, for a reference on the same team. Once.
  std::shared_ptr<const model::PackedWeights> take_first_weights() {
    return std::exchange(first_weights_, nullptr);
  }
  GangRanks& gangs() noexcept { return gangs_; }

 private:
  core::Result<cluster::RoleRecipe> supervised(const RoleOrder& order);
  // The recipe of a rank that is not rank 0 of its gang.
  cluster::RoleRecipe follower(actors::gang::Obey obey,
                               std::shared_ptr<collective::Collectives> gang,
                               core::TeamRunner* team);
  // The gang of a role that is one of several ranks, connected; null for a role that is alone.
  core::Result<std::shared_ptr<collective::Collectives>> gang_of(const RoleOrder& order,
                                                                 core::TeamRunner& team);

  OneProcess& shared_;
  RoleThreads& threads_;
  GangRanks gangs_;
  std::shared_ptr<const model::PackedWeights> first_weights_;
};

}  // namespace troupe::session
