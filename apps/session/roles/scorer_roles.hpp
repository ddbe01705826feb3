// Makes the roles that score samples: rewards, the reference and the teachers. Used on the role
// loader's compute thread. Stateless.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "apps/session/roles/one_process.hpp"
#include "apps/session/roles/role_threads.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/model/params.hpp"

#include <memory>

namespace troupe::session {

// `first`: the weights that it has if they are in this process already; null: reads them.
core::Result<cluster::RoleRecipe> reference_recipe(
    const RoleOrder& order,
    RoleThreads& threads,
    std::shared_ptr<const model::PackedWeights> first);
core::Result<cluster::RoleRecipe> teacher_recipe(const RoleOrder& order, RoleThreads& threads);
// Takes the reward of `shared` if that is the role's.
core::Result<cluster::RoleRecipe> reward_recipe(const RoleOrder& order,
                                                RoleThreads& threads,
                                                OneProcess& shared);

// Makes the role of a reward that is already loaded.
cluster::RoleHost::Factory reward_factory(std::unique_ptr<actors::reward::RewardCalls> calls,
                                          core::Duration deadline);

}  // namespace troupe::session
