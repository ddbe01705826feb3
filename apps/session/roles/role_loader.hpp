// Makes every role that computes or scores: loads what its kind needs and assigns its device and
// threads. Each node process has one, and so has a run in one process; it owns the threads and
// teams of its roles and outlives them. It loads on the compute thread, so that a node's heartbeats
// go on meanwhile.
#pragma once

#include "actors/node/node_role.hpp"
#include "apps/session/roles/generator_roles.hpp"
#include "apps/session/roles/one_process.hpp"
#include "apps/session/roles/role_threads.hpp"
#include "apps/session/roles/trainer_roles.hpp"
#include "runtime/config/train_config.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::session {

class RoleLoader final : public actors::node::RoleMaker {
 public:
  using Reach = GeneratorRoles::Reach;
  // `meet`: asks the company where the other ranks of a gang are; null: no role here has any.
  // `relays`: how the generators pass weights on to other hosts, and get them from there.
  // `gateway`: by which ranks reach those of other hosts; none on the head's own host.
  explicit RoleLoader(Reach reach = nullptr,
                      actors::gang::AskToMeet meet = nullptr,
                      weights::RelayOptions relays = {},
                      std::optional<collective::GatewayWay> gateway = {});
  explicit RoleLoader(OneProcess shared);
  ~RoleLoader() override;

  // An environment of this node's own: the keys of `env` that say what it is replace the run's.
  void bring_environment(config::TrainConfig own) { own_environment_ = std::move(own); }

  async::task<core::Result<cluster::RoleRecipe>> make(actors::Spawn spawn) override;
  std::string wedged() const override;
  void abandon(const std::string& role, std::uint64_t epoch) override {
    trainers_.gangs().abandon(role, epoch);
  }
  void abandon_starts() override { trainers_.gangs().abandon_starts(); }

 private:
  core::Result<cluster::RoleRecipe> load(const actors::Spawn& spawn);
  core::Result<cluster::RoleRecipe> load_kind(const RoleOrder& order);
  core::Result<cluster::RoleRecipe> environment(const RoleOrder& order);
  // The class that a policy, generator or reference computes in; "" of other roles.
  std::string arithmetic_of(const RoleOrder& order, core::TeamRunner* team);

  OneProcess shared_;
  std::atomic<std::int64_t> job_limit_s_{0};            // of the configuration; 0: none
  std::optional<config::TrainConfig> own_environment_;  // its `env`
  TrainerRoles trainers_;
  GeneratorRoles generators_;
  RoleThreads threads_;  // last, so that its jobs end before the rest
};

}  // namespace troupe::session
