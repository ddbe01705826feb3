// A process that plays roles: the threads that they compute on, and the loading of what each kind
// needs. One a process; owned by whoever runs the node, outlives its roles. Loading runs on the
// compute thread, so that a node goes on giving signs of life meanwhile.
#pragma once

#include "actors/node/role_maker.hpp"
#include "actors/reward/reward_source.hpp"
#include "apps/cli/placement.hpp"
#include "apps/session/roles/fault_plan.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::app {

class RoleWorkshop final : public actors::RoleMaker {
 public:
  // Turns a subscriber into one that reaches a trainer on another host; null: as it is.
  using Reach = std::function<std::shared_ptr<weights::WeightSubscriber>(
      std::shared_ptr<weights::WeightSubscriber>)>;
  explicit RoleWorkshop(Reach reach = nullptr);
  ~RoleWorkshop() override;

  async::task<core::Result<actors::RoleRecipe>> make(actors::Spawn spawn) override;

 private:
  using Recipe = core::Result<actors::RoleRecipe>;
  Recipe load(const actors::Spawn& spawn);
  Recipe load_kind(const config::TrainConfig& config, const actors::Spawn& spawn);
  Recipe load_policy(const config::TrainConfig& config,
                     const actors::Spawn& spawn,
                     core::TeamRunner& team);
  Recipe load_generator(const config::TrainConfig& config,
                        const actors::Spawn& spawn,
                        core::TeamRunner& team);
  Recipe load_reference(const config::TrainConfig& config, core::TeamRunner& team);
  Recipe load_critic(const config::TrainConfig& config,
                     const actors::Spawn& spawn,
                     core::TeamRunner& team);
  Recipe load_reward(const config::TrainConfig& config, const actors::Spawn& spawn);
  // Where a role of that kind computes.
  core::Result<core::TeamRunner*> team_of(const config::TrainConfig& config,
                                          const actors::Spawn& spawn);

  Reach reach_;
  std::unique_ptr<FaultPlan> faults_;  // of the generators; null: none
  Teams teams_;  // made when the first role computes
  async::DeviceThread compute_;
  async::DeviceThread blocking_;  // rewards wait here
  async::DeviceThread fetch_;     // weights are waited for here
};

// The reward that a configuration names. Errors: kConfig naming file and key.
core::Result<std::unique_ptr<actors::RewardSource>> make_reward(const config::TrainConfig& config);

}  // namespace troupe::app
